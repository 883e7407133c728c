#pragma once

#include <string>

#include "cuda/driver/owned.h"

namespace strobe::cuda::driver {

/// A kernel in a loaded module, which must outlive it.
class Function {
 public:
  Function() = default;
  explicit Function(abi::Function handle) : handle_(handle) {}

  abi::Function get() const { return handle_; }

  int registers() const { return attribute(abi::FunctionAttribute::num_regs); }
  int local_bytes() const { return attribute(abi::FunctionAttribute::local_size_bytes); }

  /// The most dynamic shared memory that a launch may ask for. Beyond 48 KB it must be said.
  void allow_dynamic_shared(int bytes);

  /// Blocks of this size that fit on a multiprocessor at a time.
  int blocks_per_multiprocessor(int threads, int dynamic_shared_bytes) const;

 private:
  int attribute(abi::FunctionAttribute which) const;

  abi::Function handle_ = nullptr;
};

/// A compiled program on a device.
class Module {
 public:
  /// Of the bytes of a cubin, or of PTX that ends with a zero.
  Module(const Device& device, const std::string& image);

  Function function(const std::string& name) const;

 private:
  static void release(const Api& driver, abi::Module module) {
    driver.cuModuleUnload.unchecked(module);
  }

  Owned<abi::Module, release> module_{};
};

}  // namespace strobe::cuda::driver
