#include "cuda/kernels/peaks/peaks.h"

#include <algorithm>
#include <limits>

#include "cuda/driver/launch.h"
#include "cuda/driver/memory.h"
#include "cuda/jit/loaded_kernel.h"

namespace strobe::cuda::peaks {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpgroups = kThreads / 128;

jit::KernelDescription multiply() {
  return {.name = "peaks/multiply",
          .source = "kernels/peaks/multiply.cu",
          .entries = {"mma_bf16", "mma_tf32", "fma_fp32"},
          .threads = kThreads,
          .max_registers = 64};
}

jit::KernelDescription wgmma() {
  constexpr int kTiles = (kWarpgroups * 64 + 128) * 128;  // rows of 128 bytes
  return {.name = "peaks/wgmma",
          .source = "kernels/peaks/wgmma.cu",
          .entries = {"wgmma_bf16"},
          .threads = kThreads,
          .dynamic_shared_bytes = kTiles + 1024,  // which it aligns them by
          .max_registers = 128};
}

bool has_wgmma(const jit::Architecture& architecture) {
  return architecture.major == 9 && architecture.specific;
}

/// One of the kernels' entries, with the operations of a block in a step. Steps are as many as take
/// a large GPU about a millisecond.
struct Way {
  const char* entry;
  MultiplyRate rate;
  double block_operations;
  int steps;
};

class Meter {
 public:
  Meter(const driver::Device& device, abi::Stream stream, const Time& time_ms)
      : device_(device), stream_(stream), time_ms_(time_ms), unused_(device, sizeof(float)) {}

  /// The best of a few tries: the first ones find the clocks still low.
  MultiplyRate measure(const jit::KernelDescription& kernel, const Way& way) const {
    constexpr int kTries = 5;
    const auto loaded = jit::load(device_, kernel);
    const driver::Function function = loaded->function(way.entry);
    const int blocks = device_.multiprocessors() * function.blocks_per_multiprocessor(
                                                       kernel.threads, kernel.dynamic_shared_bytes);
    const driver::LaunchShape shape{.grid = {.x = static_cast<unsigned>(blocks)},
                                    .block = {.x = static_cast<unsigned>(kernel.threads)},
                                    .dynamic_shared_bytes = kernel.dynamic_shared_bytes};
    double best_ms = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) {
      best_ms = std::min(best_ms, time_ms_([&] {
                           driver::launch(function, shape, stream_, way.steps, unused_.data());
                         }));
    }
    MultiplyRate rate = way.rate;
    rate.per_second = way.block_operations * way.steps * blocks / best_ms * 1e3;
    return rate;
  }

 private:
  const driver::Device& device_;
  abi::Stream stream_;
  const Time& time_ms_;
  driver::DeviceMemory unused_;  ///< what the kernels would write to, if they wrote
};

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture) {
  std::vector<jit::KernelDescription> all{multiply()};
  if (has_wgmma(architecture)) all.push_back(wgmma());
  return all;
}

std::vector<MultiplyRate> measure(const driver::Device& device, abi::Stream stream,
                                  const Time& time_ms) {
  const driver::ContextScope scope(device);
  const Meter meter(device, stream, time_ms);
  std::vector<MultiplyRate> rates{
      meter.measure(multiply(), {"fma_fp32", {"fma", DType::fp32}, kThreads * 16 * 4 * 2.0, 8192}),
      meter.measure(multiply(),
                    {"mma_bf16", {"mma", DType::bf16}, kWarps * 8 * 2.0 * 16 * 8 * 16, 8192}),
      meter.measure(
          multiply(),
          {"mma_tf32", {"mma of TF32", DType::fp32, true}, kWarps * 8 * 2.0 * 16 * 8 * 8, 8192})};
  if (has_wgmma(jit::Architecture::of(device))) {
    rates.push_back(meter.measure(
        wgmma(),
        {"wgmma_bf16", {"wgmma", DType::bf16}, kWarpgroups * 4 * 2.0 * 64 * 128 * 16, 1024}));
  }
  return rates;
}

}  // namespace strobe::cuda::peaks
