#pragma once

#include <memory>
#include <vector>

#include "cuda/driver/memory.h"
#include "cuda/driver/module.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/jit/loaded_kernel.h"

// Memory that is read and never written: what was in the caches before has to make room for it.
namespace strobe::cuda::read_all {

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

class ReadMemory {
 public:
  /// Fills it with zeros, ordered on the stream.
  ReadMemory(const driver::Device& device, std::size_t bytes, abi::Stream stream);

  /// Reads all of it, ordered on the stream.
  void launch(abi::Stream stream) const;

 private:
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  driver::Function function_;
  driver::DeviceMemory memory_;
  unsigned blocks_ = 0;
};

}  // namespace strobe::cuda::read_all
