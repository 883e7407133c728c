#pragma once
// Everything an instruction set offers, as one table. An isa/*.cpp includes its vector type, then
// this.

#include <math.h>

#include "cpu/generic/backward.h"
#include "cpu/generic/forward.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

inline std::size_t scratch_bytes(std::int64_t dim, std::int64_t dim_v) {
  Scratch forward_scratch(nullptr);
  const ForwardBuffers forward_buffers(forward_scratch, dim, dim_v);
  Scratch backward_scratch(nullptr);
  const KeyGradients key_gradients(backward_scratch, dim, dim_v);
  const GradientBuffers gradient_buffers(backward_scratch, dim, dim_v);
  const std::int64_t padded = round_up(larger(dim, dim_v), larger(kPackRows, kWidth));
  backward_scratch.take((kKeyBlock + 2 * kPanel) * padded + 64);  // what grad_q and grad_kv_add add
  return static_cast<std::size_t>(larger(forward_scratch.used(), backward_scratch.used()));
}

/// As many independent accumulators as a tile has, so that latency is hidden. Floating point has no
/// identities that would let the compiler shorten the loop.
inline double multiply_add_loop(std::int64_t iterations) {
  Tile<kTileVecs> tile;
  tile.clear();
  const Vec a = splat(1.0F);
  const Vec b = splat(1e-6F);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 3
      for (int v = 0; v < kTileVecs; ++v) tile.at[r][v] = fma(tile.at[r][v], a, b);
    }
  }
  float result[kTileRows * kPanel];
  tile.store_to(result, kPanel);
  __asm__ volatile("" : : "r"(result) : "memory");  // somebody reads it
  return 2.0 * kTileRows * kPanel * static_cast<double>(iterations);
}

}  // namespace

extern const IsaKernels kKernels;
const IsaKernels kKernels = {
    .name = kIsaName,
    .scratch_bytes = scratch_bytes,
    .forward = forward,
    .row_statistics = row_statistics,
    .grad_q = grad_q,
    .grad_kv_start = grad_kv_start,
    .grad_kv_add = grad_kv_add,
    .grad_kv_finish = grad_kv_finish,
    .grad_bias_add = grad_bias_add,
    .multiply_add_loop = multiply_add_loop,
};

}  // namespace strobe::cpu::STROBE_ISA
