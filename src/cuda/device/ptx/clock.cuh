#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Of a clock that all multiprocessors share.
STROBE_DEVICE long long nanoseconds() {
  long long time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

}  // namespace strobe::cuda::ptx
