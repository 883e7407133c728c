#pragma once
// From scores to probabilities, and to their gradients. With p the probabilities,
//     dp = dropout(dout·vᵀ)        ds = p ∘ (dp - delta) ∘ softcap'
// all transposed: keys are rows, queries columns.

#include "device/dropout.cuh"
#include "device/logits.cuh"
#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

/// What a lane's keys hide in a block of queries.
struct HiddenQueries {
  int begin[Scores::kRows];  ///< from the lane's first query on, the first one that sees the key
  int end[Scores::kRows];    ///< behind the last one, where queries end

  /// `first_key` is the warp's.
  STROBE_DEVICE HiddenQueries(const Mask& mask, int first_key, int first_query) {
    const int first = first_query + Scores::column_index(0);
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const int key = first_key + Scores::row_index(r);
      begin[r] = key < mask.length_k ? static_cast<int>(mask.seen_from(key)) - first
                                     : config::kBlockQueries;
      end[r] = static_cast<int>(mask.seen_until(key)) - first;
    }
  }

  STROBE_DEVICE bool contains(int row, int column_tile, int i) const {
    const int query = 8 * column_tile + i;
    return query < begin[row] || (kQueriesEnd && query >= end[row]);
  }
};

/// Hides nothing.
struct NoHiddenQueries {
  STROBE_DEVICE bool contains(int, int, int) const { return false; }
};

/// From a lane's scores of a block of queries to probabilities, all in powers of two. What belongs
/// to all of them comes from the parameters, which take no registers.
class Powers {
 public:
  /// `first_key` is the warp's; `bias` is added to all scores of the block.
  STROBE_DEVICE Powers(const Params& params, const KeyBlock& keys, const Walk& walk, int first_key,
                       const Bias& bias)
      : params_(params), bias_(bias), row_(static_cast<Word>(first_key - keys.first_key)) {
    if constexpr (config::kAlibi) {
      const Sequence& sequence = keys.sequence;
      slope_ = kLog2E * params.alibi_slopes[sequence.index * params.alibi_sequence_stride +
                                            walk.head(params, keys)];
      const int position =
          walk.first_query() + Scores::column_index(0) + sequence.length_k - sequence.length_q;
#pragma unroll
      for (int r = 0; r < Scores::kRows; ++r)
        distance_[r] = static_cast<float>(position - first_key - Scores::row_index(r));
    }
  }

  STROBE_DEVICE float probability(float score, float base, int row, int column_tile, int i) {
    float power = fmaf(score, params_.unit, -base);
    if constexpr (config::kSoftcap) {
      const float bent = hyperbolic_tangent<false>(score * params_.scale_by_cap);
      power = fmaf(bent, params_.cap_unit, -base);
    }
    const float penalty = this->penalty(row, column_tile, i);
    // A bias of minus infinity hides the key even where the score is NaN.
    if (config::kBias && penalty == -minus_infinity()) return 0;
    return ptx::exp2(power - penalty);
  }

  /// How much a logit changes with the scaled score, told from the probability: there are no
  /// registers to keep anything else. Where that has become zero, so is this.
  STROBE_DEVICE float derivative(float p, float base, int row, int column_tile, int i) {
    const float power = ptx::log2(p) + base + penalty(row, column_tile, i);
    const float bent = fminf(fmaxf(power * ptx::reciprocal(params_.cap_unit), -1.0F), 1.0F);
    return 1.0F - bent * bent;
  }

 private:
  /// ALiBi's, less the bias.
  STROBE_DEVICE float penalty(int row, int column_tile, int i) {
    float power = 0;
    if constexpr (config::kBias) {
      // Scores are visited column by column: see each_score.
      if (column_tile % 2 == 0 && i == 0 && row == 0)
        bias_.load_transposed(pairs_, row_, 8 * column_tile);
      const Word pair = pairs_[column_tile % 2 * 2 + row];
      power = -kLog2E * Element::widen(static_cast<Storage>(pair >> (16 * i)));
    }
    if constexpr (config::kAlibi)
      power += slope_ * fabsf(distance_[row] + static_cast<float>(8 * column_tile + i));
    return power;
  }

  const Params& params_;
  Bias bias_;
  Word row_;  ///< the warp's first among the block's keys
  Word pairs_[4];
  float slope_;
  float distance_[Scores::kRows];  ///< of the lane's first query to its keys
};

/// What dropout lets pass.
class Survivors {
 public:
  /// `first_key` is the warp's.
  STROBE_DEVICE Survivors(const Params& params, const KeyBlock& keys, const Walk& walk,
                          int first_key)
      : params_(params) {
    if constexpr (config::kDropout) {
      kept_ = {dropout_of(params, keys.sequence.index, walk.head(params, keys)), walk.first_query(),
               static_cast<Word>(first_key)};
    }
  }

  STROBE_DEVICE float gradient(float x, int row, int column_tile, int i) const {
    if constexpr (!config::kDropout) return x;
    return kept_.contain(row, column_tile, i) ? x * params_.dropout_scale : 0.0F;
  }

  /// All but the scale, which the sums are multiplied with.
  STROBE_DEVICE void drop(Scores& probabilities) const {
    if constexpr (config::kDropout) {
#pragma unroll
      for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (!kept_.contain(i / 2, c, i % 2)) probabilities.at(i / 2, c, i % 2) = 0;
        }
      }
    }
  }

 private:
  const Params& params_;
  TransposedSurvivors<Scores> kept_;
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
STROBE_DEVICE void make_probabilities(Scores& scores, Word bases, Powers powers,
                                      const Hidden& hidden) {
  each_score(scores, bases, [&](float& x, int r, int c, int i, float base) {
    x = powers.probability(x, base, r, c, i);
    if (hidden.contains(r, c, i)) x = 0;
  });
}

/// What is hidden becomes zero, and not the NaN that comes of zero times something infinite.
template <class Hidden>
STROBE_DEVICE void make_score_gradients(Scores& gradients, Scores& probabilities, Word bases,
                                        Powers powers, const Survivors& survivors,
                                        const Hidden& hidden) {
  each_score(gradients, bases + Shared::kDeltas, [&](float& x, int r, int c, int i, float delta) {
    x = probabilities.at(r, c, i) * (survivors.gradient(x, r, c, i) - delta);
    if (hidden.contains(r, c, i)) x = 0;
  });
  if constexpr (config::kSoftcap) {
    each_score(gradients, bases, [&](float& x, int r, int c, int i, float base) {
      x *= powers.derivative(probabilities.at(r, c, i), base, r, c, i);
    });
  }
}

}  // namespace strobe::cuda
