#pragma once
// Sums in global memory that many thread blocks add to, in whatever order they come.

#include "device/basics.cuh"

// Of several neighbours at once since Hopper, as far as the compiler knows: since CUDA 12.1.
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
#define STROBE_ADDS_TO_NEIGHBOURS 1
#else
#define STROBE_ADDS_TO_NEIGHBOURS 0
#endif

namespace strobe::cuda::ptx {

/// Adds to two neighbours, the first at a multiple of 8 bytes.
STROBE_DEVICE void add_pair(float* to, float first, float second) {
#if STROBE_ADDS_TO_NEIGHBOURS
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1,%2};" ::"l"(to), "f"(first), "f"(second)
               : "memory");
#else
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(first) : "memory");
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to + 1), "f"(second) : "memory");
#endif
}

/// Adds to four, the first at a multiple of 16 bytes.
STROBE_DEVICE void add_four(float* to, float first, float second, float third, float fourth) {
#if STROBE_ADDS_TO_NEIGHBOURS
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(first),
               "f"(second), "f"(third), "f"(fourth)
               : "memory");
#else
  add_pair(to, first, second);
  add_pair(to + 2, third, fourth);
#endif
}

}  // namespace strobe::cuda::ptx
