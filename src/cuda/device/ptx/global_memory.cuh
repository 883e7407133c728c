#pragma once
// Global memory, where the compiler does not see that it is, or that 16 bytes can go at once.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// From a multiple of 16 bytes, of what nobody changes meanwhile.
STROBE_DEVICE uint4 load_global_chunk(const void* from) {
  uint4 value;
  asm("ld.global.v4.b32 {%0,%1,%2,%3}, [%4];"
      : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
      : "l"(from));
  return value;
}

/// To a multiple of 16 bytes. An assignment becomes four stores of 4 bytes where parts of the same
/// chunk are stored elsewhere, and so four requests to the second level cache.
STROBE_DEVICE void store_global_chunk(void* to, uint4 value) {
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}
/// The same if `wanted`, without a branch, so that several can be on their way.
STROBE_DEVICE void store_global_chunk_if(bool wanted, void* to, uint4 value) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1,%2,%3,%4}; }" ::"l"(to),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(wanted ? 1 : 0)
      : "memory");
}

}  // namespace strobe::cuda::ptx
