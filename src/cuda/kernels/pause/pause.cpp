#include "cuda/kernels/pause/pause.h"

#include "cuda/driver/launch.h"

namespace strobe::cuda::pause {
namespace {

jit::KernelDescription description() {
  return {.name = "pause",
          .source = "kernels/pause/pause.cu",
          .entries = {"pause_stream"},
          .threads = 1,
          .max_registers = 16};
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {description()};
}

Pause::Pause(const driver::Device& device)
    : kernel_(jit::load(device, description())), function_(kernel_->function("pause_stream")) {}

void Pause::launch(long long nanoseconds, abi::Stream stream) const {
  driver::launch(function_, {.grid = {}, .block = {}}, stream, nanoseconds);
}

}  // namespace strobe::cuda::pause
