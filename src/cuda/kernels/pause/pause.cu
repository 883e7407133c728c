#include "config.cuh"
#include "device/ptx/clock.cuh"

/// Keeps the stream busy for so long.
extern "C" __global__ void __launch_bounds__(config::kThreads) pause_stream(long long nanoseconds) {
  const long long start = strobe::cuda::ptx::nanoseconds();
  while (strobe::cuda::ptx::nanoseconds() - start < nanoseconds) {
  }
}
