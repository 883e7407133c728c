#pragma once

#include "device/accumulator.cuh"
#include "device/epilogue.cuh"
#include "device/mask.cuh"
#include "device/ptx/math.cuh"

namespace strobe::cuda {

/// A product on tensor cores multiplies the value of a key that the mask hides with zero, which is
/// NaN if that value is not finite. This computes outputs again that came out so, key by key and
/// leaving out what is hidden. It is slow, and never runs on finite numbers.
template <class Element, class Logits, class KeepFactor>
struct HiddenValues {
  using Storage = typename Element::Storage;

  const Storage* k;  ///< of the head, key 0
  const Storage* v;  ///< likewise, the first of `columns` columns
  Wide k_stride;
  Wide v_stride;
  int dim;
  int columns;
  Logits logits;
  KeepFactor keep_factor;  ///< (query, key): what dropout makes of a probability

  /// One row, by a warp. `q` and `out` are the row's.
  STROBE_DEVICE void recompute(const Storage* q, Storage* out, int query, KeyRange visible,
                               float lse) const {
    for (int first = 0; first < columns; first += 32) {
      const int column = first + lane_index();
      const bool mine = column < columns;
      const bool wrong = mine && !is_finite(Element::widen(out[column]));
      if (!__any_sync(kAllLanes, wrong)) continue;
      float sum = 0;
      const int end = uniform(visible.end);
      for (int key = uniform(visible.begin); key < end; ++key) {
        const float x = logits(score(q, key), query, static_cast<Word>(key));
        const float p = ptx::exp2((x - lse) * kLog2E) * keep_factor(query, key);
        if (mine && x != minus_infinity()) sum += p * Element::widen(v[key * v_stride + column]);
      }
      if (wrong) out[column] = Element::narrow(sum);
    }
  }

  /// The LSE of a row, likewise.
  STROBE_DEVICE float lse(const Storage* q, int query, KeyRange visible, float sink) const {
    float top = minus_infinity();
    float sum = 0;
    const int end = uniform(visible.end);
    for (int key = uniform(visible.begin); key < end; ++key) {
      const float x = logits(score(q, key), query, static_cast<Word>(key));
      if (x == minus_infinity()) continue;
      const float raised = x > top ? x : top;
      sum = (top == minus_infinity() ? sum : sum * ptx::exp2((top - raised) * kLog2E)) +
            ptx::exp2((x - raised) * kLog2E);
      top = raised;
    }
    return finish_row(top * kLog2E, sum, sink).lse;
  }

 private:
  /// The same in all lanes.
  STROBE_DEVICE float score(const Storage* q, int key) const {
    float sum = 0;
    for (int c = lane_index(); c < dim; c += 32) {
      sum += Element::widen(q[c]) * Element::widen(k[key * k_stride + c]);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, distance);
    }
    return sum;
  }
};

}  // namespace strobe::cuda
