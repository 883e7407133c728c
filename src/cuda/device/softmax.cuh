#pragma once

#include "device/accumulator.cuh"
#include "device/ptx/math.cuh"

namespace strobe::cuda {

/// The softmax of a lane's rows while keys arrive block by block. Powers are of two: a logit x
/// weighs 2^(unit · x), so `unit` holds log₂ e and whatever scale the logits still lack. Weights
/// are relative to a reference: a logit of the row that was its largest, and that no other exceeds
/// by far.
///
/// `exact_difference` takes x - reference without rounding the reference's product first, as fp32
/// needs; the other is one multiply-add.
template <int rows, bool exact_difference>
class OnlineSoftmax {
 public:
  STROBE_DEVICE explicit OnlineSoftmax(float unit) : unit_(unit) {
#pragma unroll
    for (int r = 0; r < rows; ++r) reference_[r] = minus_infinity(), sum_[r] = 0;
  }

  /// Turns a block of logits into weights, and rescales what was summed up relative to an earlier
  /// reference. Minus infinity weighs nothing, also where a row has seen nothing else.
  template <class Logits, class Output>
  STROBE_DEVICE void take(Logits& logits, Output& output) {
    raise_references(logits, [&](int r, float factor) { output.scale_row(r, factor); });
    add_weights(logits);
  }

  /// The same where the output is not at hand: returns whether any row of the warp has to be
  /// rescaled, and then by what.
  template <class Logits>
  STROBE_DEVICE bool take(Logits& logits, float (&factor)[rows]) {
    const bool rescale = raise_references(logits, factor);
    add_weights(logits);
    return rescale;
  }

  /// The first half of it: no logit exceeds the references by far any more.
  template <class Logits>
  STROBE_DEVICE bool raise_references(Logits& logits, float (&factor)[rows]) {
    return raise_references(logits, [&](int r, float f) { factor[r] = f; });
  }

  /// The second half of it.
  template <class Logits>
  STROBE_DEVICE void add_weights(Logits& logits) {
#pragma unroll
    for (int r = 0; r < rows; ++r) sum_[r] += exponentiate(logits, r, reference_or_zero(r));
  }

  /// The second half or, if `limited`, alone: relative to the references that there are, whatever
  /// the logits are. Then it returns false, and the logits are lost, if in any lane of the warp the
  /// weights of a row add up to `limit` or more, or to NaN, as they do where there is no reference
  /// yet.
  template <class Logits>
  STROBE_DEVICE bool add_weights_below(Logits& logits, float limit, bool limited = true) {
    float total[rows];
    bool below = true;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      total[r] = exponentiate(logits, r, limited ? reference_[r] : reference_or_zero(r));
      below = below && total[r] < limit;
    }
    if (limited & __any_sync(kAllLanes, !below)) return false;
#pragma unroll
    for (int r = 0; r < rows; ++r) sum_[r] += total[r];
    return true;
  }

  /// Adds up the sums of the lanes that share a row. Once, at the end.
  STROBE_DEVICE void finish() {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      sum_[r] = over_row(sum_[r], [](float a, float b) { return a + b; });
    }
  }

  /// What the weights of a row are relative to, as a power of two.
  STROBE_DEVICE float base(int row) const {
    return reference_[row] * unit_;
  }
  STROBE_DEVICE float sum(int row) const {
    return sum_[row];
  }

 private:
  /// By how much, as a power of two, a weight may exceed 1. Most rows then keep their first
  /// reference, where their maximum would rise every few blocks. Nothing is less exact for it: a
  /// weight's relative error is that of its type, whatever its size.
  static constexpr float kSlack = 8;

  /// Where a reference has to be raised in any row of the warp, raises all, calls rescale(row,
  /// factor) with what each row's sums are to be multiplied by, and returns true.
  template <class Logits, class Rescale>
  STROBE_DEVICE bool raise_references(Logits& logits, Rescale rescale) {
    float before[rows];
    bool raised = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      before[r] = reference_[r];
      const float highest = over_row(peak(logits, r), [](float a, float b) { return fmaxf(a, b); });
      if ((highest - before[r]) * unit_ > kSlack) reference_[r] = highest;
      raised = raised || reference_[r] != before[r];
    }
    if (!__any_sync(kAllLanes, raised)) return false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float factor =
          reference_[r] == before[r] ? 1.0F : ptx::exp2((before[r] - reference_[r]) * unit_);
      sum_[r] *= factor;
      rescale(r, factor);
    }
    return true;
  }

  template <class Logits>
  STROBE_DEVICE float peak(Logits& logits, int row) const {
    float highest = reference_[row];
#pragma unroll
    for (int c = 0; c < Logits::kColumnTiles; ++c) {
      highest = fmaxf(highest, fmaxf(logits.at(row, c, 0), logits.at(row, c, 1)));
    }
    return highest;
  }

  /// Where nothing was seen 0: 2^-∞ is 0 all the same, and ∞ - ∞ is not.
  STROBE_DEVICE float reference_or_zero(int row) const {
    return reference_[row] == minus_infinity() ? 0.0F : reference_[row];
  }

  template <class Logits>
  STROBE_DEVICE float exponentiate(Logits& logits, int row, float highest) const {
    const float base = highest * unit_;
    float total = 0;
#pragma unroll
    for (int c = 0; c < Logits::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = logits.at(row, c, i);
        x = ptx::exp2(exact_difference ? (x - highest) * unit_ : fmaf(x, unit_, -base));
        total += x;
      }
    }
    return total;
  }

  float unit_;
  float reference_[rows];
  float sum_[rows];
};

}  // namespace strobe::cuda
