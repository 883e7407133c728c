#pragma once
// The products of a warpgroup. They are only started here; until they have been waited for, nobody
// may touch their registers. Where keys are the rows of a product, a warpgroup has 64 of them.

#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

/// scores = keys · queriesᵀ, or gradients = values · doutᵀ
STROBE_DEVICE void start_scores(Scores& scores, Word key_rows, Word queries) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::inner>(
        scores.tile[0], KeyTile::along_columns(key_rows, step),
        QueryTile::along_columns(queries, step), step > 0);
  }
  ptx::wgmma_commit();
}

/// dk += scores · queries, or dv += scores · dout
STROBE_DEVICE void start_key_sums(KeySums& sums, const ScoreOperand& scores, Word queries) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < config::kBlockQueries / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::columns>(sums.tile[0], scores[step],
                                                    QueryTile::along_rows(queries, step), true);
  }
  ptx::wgmma_commit();
}

/// A slice of dq = scoresᵀ · keys, with 64 rows of the one and some columns of the other.
STROBE_DEVICE void start_query_sums(QuerySums& sums, Word score_rows, Word key_columns) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < config::kBlockKeys / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::columns>(
        sums.tile[0], ScoreTile::along_columns(score_rows, step),
        KeyTile::along_rows(key_columns, step), step > 0);
  }
  ptx::wgmma_commit();
}

}  // namespace strobe::cuda
