#pragma once
// The two products of a warpgroup. They are only started here; until they have been waited for,
// nobody may touch their registers.

#include "device/multiply.cuh"
#include "device/ptx/again.cuh"
#include "kernels/hopper_forward/layout.cuh"

namespace strobe::cuda {

/// Probabilities as the left operand.
using Weights = RegisterOperand<config::kBlockKeys>;

/// scores = queries · keysᵀ
STROBE_DEVICE void start_scores(Scores& scores, Word queries, Word keys) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::inner>(scores.tile[0],
                                                  QueryTile::along_columns(queries, step),
                                                  KeyTile::along_columns(keys, step), step > 0);
  }
  ptx::wgmma_commit();
}

/// The same by each warp on its own, done when it returns: slow, but no other warp has to come.
STROBE_DEVICE void multiply_again(Scores& scores, Word queries, Word keys) {
  using Multiply = MultiplyOf<config::kArithmetic>::Type;
  constexpr int kStepsAtOnce = config::kWarpgroups == 2 ? 4 : 1;  // where there are registers
  const Word thread = ptx::again(threadIdx.x);
  const Word query = thread % kWarpgroupThreads / 32 * 16 + thread % 16;
  scores.clear();
#pragma unroll kStepsAtOnce
  for (Word step = 0; step < kColumns / 16; ++step) {
    Word left[4];
    ptx::load_matrices(left, queries + QueryTile::chunk_offset(query, 2 * step + thread / 16 % 2));
    const Word chunk = 2 * step + thread / 8 % 2;
    const Word first_keys = keys + KeyTile::chunk_offset(thread % 8, chunk);
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
      Word right[2];
      ptx::load_two_matrices(right, first_keys + c * KeyTile::eight_rows(chunk));
      Multiply::add(scores.tile[0][c], Multiply::left(left), Multiply::right(right[0], right[1]));
    }
  }
}

/// output += weights · values
STROBE_DEVICE void start_output(Output& output, const Weights& weights, Word values) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < config::kBlockKeys / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::columns>(output.tile[0], weights[step],
                                                    ValueTile::along_rows(values, step), true);
  }
  ptx::wgmma_commit();
}

}  // namespace strobe::cuda
