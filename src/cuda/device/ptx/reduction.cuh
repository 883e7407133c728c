#pragma once
// Sums in global memory that many thread blocks add to, in whatever order they come.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Adds to two neighbours, the first at a multiple of 8 bytes.
STROBE_DEVICE void add_pair(float* to, float first, float second) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1,%2};" ::"l"(to), "f"(first), "f"(second)
               : "memory");
#else
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(first) : "memory");
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to + 1), "f"(second) : "memory");
#endif
}

}  // namespace strobe::cuda::ptx
