#pragma once
// From scores to probabilities, and to their gradients. With p the probabilities,
//     dp = dout·vᵀ        ds = p ∘ (dp - delta)
// all transposed: keys are rows, queries columns.

#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

/// What a lane's keys hide in a block of queries.
struct HiddenQueries {
  int end[Scores::kRows];  ///< queries from the lane's first one to here do not see the key

  /// `first_key` is the warp's.
  STROBE_DEVICE HiddenQueries(const Params& params, int first_key, int first_query) {
    const Mask mask = mask_of(params);
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const int key = first_key + Scores::row_index(r);
      const int seen_from = static_cast<int>(mask.seen_from(key));
      end[r] = key < params.seqlen_k ? seen_from - first_query - Scores::column_index(0)
                                     : config::kBlockQueries;
    }
  }

  STROBE_DEVICE bool contains(int row, int column_tile, int i) const {
    return 8 * column_tile + i < end[row];
  }
};

/// Hides nothing.
struct NoHiddenQueries {
  STROBE_DEVICE bool contains(int, int, int) const { return false; }
};

/// Calls visit(element, row, column tile, i, what belongs to the query) for all scores of a lane.
template <class Visit>
STROBE_DEVICE void each_score(Scores& scores, Word of_queries, Visit visit) {
#pragma unroll
  for (int c = 0; c < Scores::kColumnTiles; ++c) {
    const uint2 both = ptx::load_words(of_queries + Scores::column_index(c) * 4);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float of_query = __uint_as_float(i == 0 ? both.x : both.y);
#pragma unroll
      for (int r = 0; r < Scores::kRows; ++r) visit(scores.at(r, c, i), r, c, i, of_query);
    }
  }
}

template <class Hidden>
STROBE_DEVICE void make_probabilities(Scores& scores, Word bases, float unit,
                                      const Hidden& hidden) {
  each_score(scores, bases, [&](float& x, int r, int c, int i, float base) {
    x = ptx::exp2(fmaf(x, unit, -base));
    if (hidden.contains(r, c, i)) x = 0;
  });
}

/// What is hidden becomes zero, and not the NaN that comes of zero times something infinite.
template <class Hidden>
STROBE_DEVICE void make_score_gradients(Scores& gradients, Scores& probabilities, Word deltas,
                                        const Hidden& hidden) {
  each_score(gradients, deltas, [&](float& x, int r, int c, int i, float delta) {
    x = probabilities.at(r, c, i) * (x - delta);
    if (hidden.contains(r, c, i)) x = 0;
  });
}

}  // namespace strobe::cuda
