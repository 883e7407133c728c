#pragma once

#include <memory>
#include <vector>

#include "cuda/driver/module.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/jit/loaded_kernel.h"

// Work that does nothing for a while: what is put on the stream meanwhile begins as soon as it can,
// not when the host has come around to it.
namespace strobe::cuda::pause {

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

class Pause {
 public:
  explicit Pause(const driver::Device& device);

  void launch(long long nanoseconds, abi::Stream stream) const;

 private:
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  driver::Function function_;
};

}  // namespace strobe::cuda::pause
