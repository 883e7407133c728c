#pragma once
// From scores to logits: scale, softcap, bias, ALiBi.

#include "device/accumulator.cuh"
#include "device/ptx/math.cuh"

namespace strobe::cuda {

/// tanh to about 10⁻⁷ of 1, whereas tanhf is exact for small numbers too.
template <bool exact>
STROBE_DEVICE float hyperbolic_tangent(float x) {
  if constexpr (exact) {
    return tanhf(x);
  } else {
    return 1.0F - 2.0F * ptx::reciprocal(1.0F + ptx::exp2(2.0F * kLog2E * x));
  }
}

/// What is done to the scores besides the mask. Where nothing is, the softmax applies the scale.
struct LogitFeatures {
  bool softcap;
  bool bias;
  bool alibi;
  bool exact;  ///< to the last bits of fp32
};

/// The logits of one head of one sequence.
template <LogitFeatures features, class Element>
struct Logits {
  float scale;
  float softcap;
  float slope;                            ///< of ALiBi
  const typename Element::Storage* bias;  ///< [queries, keys]
  Wide bias_stride;                       ///< from query to query, 0 if one row serves all
  int length_q;
  int length_k;

  STROBE_DEVICE float operator()(float score, int query, Word key) const {
    float derivative;
    return (*this)(score, query, key, derivative);
  }

  /// Also tells how much the logit changes with the scaled score.
  STROBE_DEVICE float operator()(float score, int query, Word key, float& derivative) const {
    float added = 0;
    if constexpr (features.bias) added = bias_at(query, key);
    return biased(score, added, query, key, derivative);
  }

  /// The same with a bias that the caller has read; without one, `added` is ignored.
  STROBE_DEVICE float biased(float score, float added, int query, Word key,
                             float& derivative) const {
    float x = score * scale;
    derivative = 1;
    if constexpr (features.softcap) {
      const float bent = hyperbolic_tangent<features.exact>(
          features.exact ? x / softcap : x * ptx::reciprocal(softcap));
      derivative = 1.0F - bent * bent;
      x = softcap * bent;
    }
    if constexpr (features.bias) {
      // Minus infinity hides the key even where the score is NaN.
      x = added == minus_infinity() ? added : x + added;
    }
    if constexpr (features.alibi) {
      const int position = query + length_k - length_q;
      const bool ahead = static_cast<Wide>(position) < static_cast<Wide>(key);
      const Word distance =
          ahead ? key - static_cast<Word>(position) : static_cast<Word>(position) - key;
      x -= slope * static_cast<float>(distance);
    }
    return x;
  }

  /// A warp's rows from `first_query` against the keys from `first_key`.
  template <class Scores>
  STROBE_DEVICE void apply(Scores& scores, int first_query, Word first_key) const {
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
#pragma unroll
      for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = scores.at(r, c, i);
          x = (*this)(x, first_query + Scores::row_index(r),
                      first_key + Scores::column_index(c) + i);
        }
      }
    }
  }

 private:
  /// Padding reads the last row or column.
  STROBE_DEVICE float bias_at(int query, Word key) const {
    const Wide row = smaller(query, length_q - 1);
    return Element::widen(bias[row * bias_stride + smaller(key, static_cast<Word>(length_k - 1))]);
  }
};

}  // namespace strobe::cuda
