#include "cuda/kernels/read_all/read_all.h"

#include "cuda/driver/launch.h"
#include "cuda/kernels/configuration.h"

namespace strobe::cuda::read_all {
namespace {

constexpr int kThreads = 256;

jit::KernelDescription description() {
  return {.name = "read_all",
          .source = "kernels/read_all/read_all.cu",
          .entries = {"read_all"},
          .threads = kThreads,
          .max_registers = 40};
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {description()};
}

ReadMemory::ReadMemory(const driver::Device& device, std::size_t bytes, abi::Stream stream)
    : kernel_(jit::load(device, description())),
      function_(kernel_->function("read_all")),
      memory_(device, bytes) {
  const driver::ContextScope scope(device);
  blocks_ = static_cast<unsigned>(device.multiprocessors() *
                                  function_.blocks_per_multiprocessor(kThreads, 0));
  driver::fill_async(memory_.data(), 0, bytes, stream);
}

void ReadMemory::launch(abi::Stream stream) const {
  const auto chunks = static_cast<long long>(memory_.bytes()) / kChunkBytes;
  driver::launch(function_, {.grid = {.x = blocks_}, .block = {.x = kThreads}}, stream,
                 memory_.data(), chunks);
}

}  // namespace strobe::cuda::read_all
