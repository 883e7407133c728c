#pragma once
// The two products of a warpgroup. They are only started here; until they have been waited for,
// nobody may touch their registers.

#include "kernels/hopper_forward/layout.cuh"

namespace strobe::cuda {

/// Probabilities as the left operand: 16 keys each.
using Weights = Word[config::kBlockKeys / 16][4];

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

/// The sums of a product lie as its next one takes them.
STROBE_DEVICE void pack(Weights& weights, const Scores& scores) {
#pragma unroll
  for (int step = 0; step < config::kBlockKeys / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = scores.tile[0][2 * step + i / 2];
      weights[step][i] = Element::pack(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }
}

}  // namespace strobe::cuda
