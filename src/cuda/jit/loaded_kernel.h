#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cuda/driver/module.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/jit/resources.h"

namespace strobe::cuda::jit {

/// A kernel on a device, ready to be launched. A plan holds one, and the functions it launches, so
/// that a call looks up nothing.
class LoadedKernel {
 public:
  LoadedKernel(const driver::Device& device, const KernelDescription& kernel);

  /// One of the description's entries; may use the dynamic shared memory that the description says.
  /// Throws std::logic_error for another name.
  driver::Function function(std::string_view entry) const;

  const std::vector<Resources>& resources() const { return resources_; }

 private:
  struct Entry {
    std::string name;
    driver::Function function;
  };

  std::vector<Resources> resources_{};
  std::unique_ptr<const driver::Module> module_{};
  std::vector<Entry> entries_{};
};

/// Built for the device and loaded there, once in a process: those who ask while that is being done
/// wait for it. Throws as build does.
std::shared_ptr<const LoadedKernel> load(const driver::Device& device,
                                         const KernelDescription& kernel);

}  // namespace strobe::cuda::jit
