#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "cuda/driver/abi.h"

namespace strobe::cuda::driver {

/// A GPU. There is one object for each, alive until the process ends.
class Device {
 public:
  static int count();

  /// Throws InvalidArgument naming the indices there are, Unsupported if there is no driver.
  static const Device& at(int index);

  /// The one whose context is current in this thread, or the first if none is.
  static const Device& current();

  explicit Device(int index);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  int capability_major() const { return capability_major_; }
  int capability_minor() const { return capability_minor_; }
  int multiprocessors() const { return multiprocessors_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }
  int l2_bytes() const { return l2_bytes_; }
  int shared_bytes_per_block() const { return shared_bytes_per_block_; }  ///< the most, on request

  /// Where it is plugged in, "0000:1b:00.0": how other libraries know it, whatever the order is in
  /// which CUDA counts the GPUs that it shows.
  std::string pci_bus_id() const;

  /// The context that this process's libraries share on the device. Retained at the first call,
  /// for as long as the process lives.
  abi::Context primary_context() const;

 private:
  int attribute(abi::DeviceAttribute which) const;

  int index_;
  abi::DeviceId id_ = 0;
  std::string name_{};
  int capability_major_ = 0;
  int capability_minor_ = 0;
  int multiprocessors_ = 0;
  std::int64_t memory_bytes_ = 0;
  int l2_bytes_ = 0;
  int shared_bytes_per_block_ = 0;
  mutable std::once_flag retained_{};
  mutable abi::Context context_ = nullptr;
};

/// Makes a device's primary context current in this thread, and afterwards the caller's again.
class ContextScope {
 public:
  explicit ContextScope(const Device& device);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();
};

}  // namespace strobe::cuda::driver
