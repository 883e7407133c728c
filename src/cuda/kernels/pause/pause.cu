#include "config.cuh"

/// Keeps the stream busy for so long.
extern "C" __global__ void __launch_bounds__(config::kThreads) pause(long long nanoseconds) {
  const auto now = [] {
    long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
  };
  const long long start = now();
  while (now() - start < nanoseconds) {
  }
}
