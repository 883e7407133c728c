#pragma once
// A product on tensor cores multiplies a query or key with zero where the mask hides the one from
// the other, which is NaN if it is not finite. Gradients that came out so are computed again here,
// pair by pair and leaving out what is hidden. It is slow, and never runs on finite numbers.

#include "kernels/portable_backward/common.cuh"

namespace strobe::cuda {

/// True in all lanes if any of the warp's sums is not finite.
template <class Sums>
STROBE_DEVICE bool any_not_finite(Sums& sums) {
  float probe = 0;
#pragma unroll
  for (int r = 0; r < Sums::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Sums::kColumnTiles; ++c) {
      probe = fmaf(sums.at(r, c, 0), 0.0F, fmaf(sums.at(r, c, 1), 0.0F, probe));
    }
  }
  return __any_sync(kAllLanes, probe != 0);
}

/// One head of one sequence. All functions are called by whole warps.
struct HiddenGradients {
  const Params& params;
  const Sequence& sequence;
  int head;

  /// dq of a query, in the columns [first, end) of its row `to` that are not finite.
  STROBE_DEVICE void repair_query(Storage* to, int query, int first, int end) const {
    const KeyRange visible = mask_of(params, sequence).visible(query);
    repair(to, first, end, params.scale, [&](int column) {
      float sum = 0;
      for (int key = visible.begin; key < visible.end && unsettled(sum); ++key) {
        const Pair one = pair(query, key);
        if (!one.hidden) sum += one.score_gradient * Element::widen(key_row(key)[column]);
      }
      return sum;
    });
  }

  /// dk of a key, summed over the heads of the group, of which `head` is the first.
  STROBE_DEVICE void repair_key(Storage* to, int key, int first, int end) const {
    repair(to, first, end, params.scale, [&](int column) {
      return over_queries(key, [&](const HiddenGradients& one, const Pair& pair, int query) {
        return pair.score_gradient * Element::widen(one.query_row(query)[column]);
      });
    });
  }

  /// dv likewise.
  STROBE_DEVICE void repair_value(Storage* to, int key, int first, int end) const {
    repair(to, first, end, 1.0F, [&](int column) {
      return over_queries(key, [&](const HiddenGradients& one, const Pair& pair, int query) {
        return pair.probability * Element::widen(one.dout_row(query)[column]);
      });
    });
  }

 private:
  struct Pair {
    bool hidden;
    float probability;  ///< as it multiplies the value
    float score_gradient;
  };

  template <class Sum>
  STROBE_DEVICE static void repair(Storage* to, int first, int end, float factor, Sum sum) {
    for (int begin = first; begin < end; begin += 32) {
      const int column = begin + lane_index();
      const bool wrong = column < end && !is_finite(Element::widen(to[column]));
      if (!__any_sync(kAllLanes, wrong)) continue;
      const float value = sum(smaller(column, end - 1)) * factor;
      if (wrong) to[column] = Element::narrow(value);
    }
  }

  /// Whether any lane's sum may still change: NaN stays NaN.
  STROBE_DEVICE static bool unsettled(float sum) { return __any_sync(kAllLanes, sum == sum); }

  template <class Term>
  STROBE_DEVICE float over_queries(int key, Term term) const {
    const Mask mask = mask_of(params, sequence);
    float sum = 0;
    for (int h = head; h < head + params.heads_per_key_head; ++h) {
      const HiddenGradients one = {params, sequence, h};
      for (int query = 0; query < sequence.length_q && unsettled(sum); ++query) {
        if (!mask.visible(query).contains(static_cast<Word>(key))) continue;
        const Pair pair = one.pair(query, key);
        if (!pair.hidden) sum += term(one, pair, query);
      }
    }
    return sum;
  }

  STROBE_DEVICE Pair pair(int query, int key) const {
    const RowStatistics statistics =
        params.statistics[workspace_row(params, sequence, head) + query];
    const HeadLogits logits = logits_of(params, sequence, head);
    float derivative;
    const float x = logits(dot<config::kDim>(query_row(query), key_row(key)), query,
                           static_cast<Word>(key), derivative);
    // A row that sees nothing has a bias of minus infinity throughout.
    if (x == minus_infinity() || statistics.base == -minus_infinity()) return {true, 0, 0};
    float factor = 1;
    if constexpr (config::kDropout) {
      factor = dropout_of(params, sequence.index, head).keeps(static_cast<Word>(key), query)
                   ? params.dropout_scale
                   : 0.0F;
    }
    const float p = kExact ? ptx::exp2((x - statistics.base) * kLog2E)
                           : ptx::exp2(fmaf(x, kLog2E, -statistics.base));
    const float dp = factor == 0 ? 0.0F : dot<config::kValueDim>(dout_row(query), value_row(key));
    return {false, factor == 0 ? 0.0F : p * factor,
            p * (dp * factor - statistics.delta) * derivative};
  }

  /// The same in all lanes.
  template <int dim>
  STROBE_DEVICE static float dot(const Storage* a, const Storage* b) {
    float sum = 0;
    for (int c = lane_index(); c < dim; c += 32) sum += Element::widen(a[c]) * Element::widen(b[c]);
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, distance);
    }
    return sum;
  }

  STROBE_DEVICE const Storage* query_row(int query) const {
    return rows_of(params.q, params.q_strides, sequence.index,
                   static_cast<Wide>(sequence.first_q) + query, head);
  }
  STROBE_DEVICE const Storage* dout_row(int query) const {
    return rows_of(params.dout, params.dout_strides, sequence.index,
                   static_cast<Wide>(sequence.first_q) + query, head);
  }
  STROBE_DEVICE const Storage* key_row(int key) const {
    return rows_of(params.k, params.k_strides, sequence.index,
                   static_cast<Wide>(sequence.first_k) + key, head / params.heads_per_key_head);
  }
  STROBE_DEVICE const Storage* value_row(int key) const {
    return rows_of(params.v, params.v_strides, sequence.index,
                   static_cast<Wide>(sequence.first_k) + key, head / params.heads_per_key_head);
  }
};

}  // namespace strobe::cuda
