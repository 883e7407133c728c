#pragma once
// Shared memory by its 32-bit address.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

STROBE_DEVICE Word shared_address(const void* pointer) {
  return static_cast<Word>(__cvta_generic_to_shared(pointer));
}

/// Four matrices of eight rows of 16 bytes; lane l gives the address of row l % 8 of matrix l / 8
/// and receives 4 bytes of each: number l % 4 of row l / 4.
STROBE_DEVICE void load_matrices(Word (&to)[4], Word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

/// The same of 16-bit elements, each matrix transposed.
STROBE_DEVICE void load_matrices_transposed(Word (&to)[4], Word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

/// The opposite of load_matrices; from Hopper on.
STROBE_DEVICE void store_matrices(Word address, const Word (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

/// The same of 16-bit elements, each matrix transposed.
STROBE_DEVICE void store_matrices_transposed(Word address, const Word (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

/// Two matrices, by the addresses of the first 16 lanes.
STROBE_DEVICE void load_two_matrices(Word (&to)[2], Word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(address));
}

STROBE_DEVICE void load_two_matrices_transposed(Word (&to)[2], Word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(address));
}

/// Of 2 or 4 bytes.
template <class T>
STROBE_DEVICE T load_element(Word address) {
  T value;
  if constexpr (sizeof(T) == 2) {
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(value) : "r"(address));
  } else {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
  }
  return value;
}

STROBE_DEVICE Word load_word(Word address) {
  Word value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address));
  return value;
}

STROBE_DEVICE uint2 load_words(Word address) {
  uint2 value;
  asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(address));
  return value;
}

STROBE_DEVICE uint4 load_chunk(Word address) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address));
  return value;
}

STROBE_DEVICE void store_word(Word address, Word value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

STROBE_DEVICE void store_chunk(Word address, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

STROBE_DEVICE void store_words(Word address, Word first, Word second) {
  asm volatile("st.shared.v2.b32 [%0], {%1,%2};" ::"r"(address), "r"(first), "r"(second)
               : "memory");
}

}  // namespace strobe::cuda::ptx
