#pragma once
// What the configurations of all kernels are made with.

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "cuda/jit/kernel_description.h"
#include "device/arithmetic.cuh"
#include "device/narrow_end.cuh"
#include "strobe/dtype.h"

namespace strobe::cuda {

/// Kernels read rows in chunks of so many bytes, and so many elements of 16 bits.
inline constexpr int kChunkBytes = 16;
inline constexpr int kChunkElements = kChunkBytes / 2;

/// Shared memory in bytes that a thread block can have, and that a multiprocessor has for all.
struct SharedMemory {
  int per_block;
  int per_multiprocessor;
};

/// By compute capability, 80 for sm_80.
constexpr SharedMemory shared_memory_of(int architecture) {
  switch (architecture) {
    case 80:
    case 87:
      return {163 * 1024, 164 * 1024};
    case 90:
    case 100:
    case 103:
    case 110:
      return {227 * 1024, 228 * 1024};
    default:
      return {99 * 1024, 100 * 1024};
  }
}

/// How operands of a dtype are multiplied; `tf32` is for fp32.
constexpr Arithmetic arithmetic_of(DType dtype, bool tf32) {
  if (dtype == DType::bf16) return Arithmetic::bf16;
  if (dtype == DType::fp16) return Arithmetic::fp16;
  return tf32 ? Arithmetic::tf32 : Arithmetic::fp32;
}

constexpr bool is_half(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::bf16 || arithmetic == Arithmetic::fp16;
}

/// Registers that a thread has where so many blocks of threads share a multiprocessor.
constexpr int registers_of_a_thread(int threads, int blocks) {
  constexpr int kRegisters = 65536;
  return std::min(kRegisters / (threads * blocks) / 8 * 8, 255);
}

/// kArithmetic
inline jit::Constant arithmetic_constant(Arithmetic arithmetic) {
  constexpr std::array kNames = {"bf16", "fp16", "tf32", "fp32"};  // in the order of Arithmetic
  return {"kArithmetic",
          jit::Enumerator{"strobe::cuda::Arithmetic", kNames[static_cast<std::size_t>(arithmetic)],
                          "device/arithmetic.cuh"}};
}

/// Whether later queries see more keys, and so take longer.
template <class Features>
constexpr bool last_queries_first(const Features& features) {
  return features.window_right && !features.window_left;
}

/// Columns of a tile for heads of `dim` elements of 16 bits: whole chunks, and where heads may
/// begin within one, what lies before them there, if heads follow each other.
constexpr int tile_columns(int dim, bool shifted = false, int unit = kChunkElements) {
  const int before = shifted ? unit - std::gcd(dim, unit) : 0;
  return (dim + before + kChunkElements - 1) / kChunkElements * kChunkElements;
}

/// Of a row of so many columns in shared memory, see SwizzledTile.
constexpr int tile_row_bytes(int columns) {
  return (columns + 63) / 64 * 128;
}

/// Of rows that end narrow where that saves memory.
constexpr int narrow_tile_bytes(int rows, int columns) {
  constexpr int kAlignment = 1024;
  const int row_bytes =
      ends_narrow(columns) ? (columns / 64 * 64 + kNarrowColumns) * 2 : tile_row_bytes(columns);
  return (rows * row_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Heads that thread blocks take turns in, so that keys and values of a section stay in the second
/// level cache of `cache_bytes`; see Schedule. One after the other where all blocks are equally
/// long.
template <class Features>
int heads_per_section(const Features& features, long long seqlen_k, int heads_per_key_head,
                      long long all_heads, long long cache_bytes) {
  if (!last_queries_first(features)) return 1;
  const long long element = is_half(features.arithmetic) ? 2 : 4;
  const long long head_bytes =
      std::max(1LL, seqlen_k * (features.dim + features.value_dim) * element);
  const long long heads = cache_bytes / head_bytes * heads_per_key_head;
  return static_cast<int>(std::max(1LL, std::min({heads, all_heads, 1LL << 20})));
}

}  // namespace strobe::cuda
