#pragma once
// The products of a warpgroup. They are only started here; until they have been waited for, nobody
// may touch their registers. Where keys are the rows of a product, a warpgroup has 64 of them.

#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

/// scores = rows · columnsᵀ, of tiles that are `dim` wide
template <class RowTile, class ColumnTile, int dim>
STROBE_DEVICE void start_transposed(Scores& scores, Word rows, Word columns) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < ceil_div(dim, 16); ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::inner>(
        scores.tile[0], RowTile::along_columns(rows, step),
        ColumnTile::along_columns(columns, step), step > 0);
  }
  ptx::wgmma_commit();
}

/// scores = keys · queriesᵀ
STROBE_DEVICE void start_scores(Scores& scores, Word keys, Word queries) {
  start_transposed<KeyTile, QueryTile, config::kKeyColumns>(scores, keys, queries);
}
/// gradients = values · doutᵀ
STROBE_DEVICE void start_gradients(Scores& gradients, Word values, Word douts) {
  start_transposed<ValueTile, DoutTile, config::kValueColumns>(gradients, values, douts);
}

constexpr int kQuerySteps = config::kBlockQueries / 16;

/// sums += scores · rows, of so many steps of 16 queries
template <class RowTile, int first_step = 0, int end_step = kQuerySteps, int tiles>
STROBE_DEVICE void start_sums(float (&sums)[tiles][4], const ScoreOperand& scores, Word rows) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = first_step; step < end_step; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::columns>(sums, scores[step],
                                                    RowTile::along_rows(rows, step), true);
  }
  ptx::wgmma_commit();
}

/// Part of a slice of dq, of one block of keys.
template <bool adds, int tiles>
STROBE_DEVICE void multiply_query_sums(float (&sums)[tiles][4], Word score_rows, Word key_columns) {
#pragma unroll
  for (int step = 0; step < config::kBlockKeys / 16; ++step) {
    ptx::wgmma<kHalfType, ptx::RightOrder::columns>(
        sums, ScoreTile::along_columns(score_rows, step), KeyTile::along_rows(key_columns, step),
        adds || step > 0);
  }
}

/// A slice of dq = scoresᵀ · keys, with 64 rows of the one and some columns of the other.
STROBE_DEVICE void start_query_sums(QuerySums& sums, Word score_rows, Word key_columns) {
  ptx::wgmma_fence();
  multiply_query_sums<false>(sums.tile[0], score_rows, key_columns);
  ptx::wgmma_commit();
}

}  // namespace strobe::cuda
