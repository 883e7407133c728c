#pragma once

#include "device/accumulator.cuh"
#include "device/ptx/math.cuh"

namespace strobe::cuda {

/// The softmax of a lane's rows while keys arrive block by block. Powers are of two: a logit x
/// weighs 2^(unit · x), so `unit` holds log₂ e and whatever scale the logits still lack.
///
/// `exact_difference` takes x - maximum without rounding the maximum's product first, as fp32
/// needs; the other is one multiply-add.
template <int rows, bool exact_difference>
class OnlineSoftmax {
 public:
  STROBE_DEVICE explicit OnlineSoftmax(float unit) : unit_(unit) {
#pragma unroll
    for (int r = 0; r < rows; ++r) maximum_[r] = minus_infinity(), sum_[r] = 0;
  }

  /// Turns a block of logits into weights relative to the maximum so far, and rescales what was
  /// summed up relative to an earlier one. Minus infinity weighs nothing, also where a row has
  /// seen nothing else.
  template <class Logits, class Output>
  STROBE_DEVICE void take(Logits& logits, Output& output) {
    float before[rows];
    bool grown = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      before[r] = maximum_[r];
      maximum_[r] = over_row(peak(logits, r), [](float a, float b) { return fmaxf(a, b); });
      grown = grown || maximum_[r] != before[r];
    }
    // After a few blocks most maxima stay. Skipping changes no bit: the factor would be one.
    if (__any_sync(kAllLanes, grown)) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const float factor =
            maximum_[r] == before[r] ? 1.0F : ptx::exp2((before[r] - maximum_[r]) * unit_);
        sum_[r] *= factor;
        output.scale_row(r, factor);
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) sum_[r] += exponentiate(logits, r);
  }

  /// The same where the output is not at hand: returns whether any row of the warp has to be
  /// rescaled, and then by what.
  template <class Logits>
  STROBE_DEVICE bool take(Logits& logits, float (&factor)[rows]) {
    float before[rows];
    bool grown = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      before[r] = maximum_[r];
      maximum_[r] = over_row(peak(logits, r), [](float a, float b) { return fmaxf(a, b); });
      grown = grown || maximum_[r] != before[r];
    }
    const bool rescale = __any_sync(kAllLanes, grown);
    if (rescale) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        factor[r] = maximum_[r] == before[r] ? 1.0F : ptx::exp2((before[r] - maximum_[r]) * unit_);
        sum_[r] *= factor[r];
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) sum_[r] += exponentiate(logits, r);
    return rescale;
  }

  /// The same relative to the maximum that there is, whatever the logits are: nothing has to be
  /// rescaled. Returns false, and the logits are lost, if in any lane of the warp the weights of a
  /// row add up to `limit` or more, or to NaN, as they do where no maximum is known yet.
  template <class Logits>
  STROBE_DEVICE bool take_below(Logits& logits, float limit) {
    float total[rows];
    bool below = true;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      total[r] = exponentiate(logits, r, maximum_[r]);
      below = below && total[r] < limit;
    }
    if (__any_sync(kAllLanes, !below)) return false;
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
    return maximum_[row] * unit_;
  }
  STROBE_DEVICE float sum(int row) const {
    return sum_[row];
  }

 private:
  template <class Logits>
  STROBE_DEVICE float peak(Logits& logits, int row) const {
    float highest = maximum_[row];
#pragma unroll
    for (int c = 0; c < Logits::kColumnTiles; ++c) {
      highest = fmaxf(highest, fmaxf(logits.at(row, c, 0), logits.at(row, c, 1)));
    }
    return highest;
  }

  template <class Logits>
  STROBE_DEVICE float exponentiate(Logits& logits, int row) const {
    // Relative to 0 where nothing was seen: 2^-∞ is 0 all the same, and ∞ - ∞ is not.
    return exponentiate(logits, row, maximum_[row] == minus_infinity() ? 0.0F : maximum_[row]);
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
  float maximum_[rows];
  float sum_[rows];
};

}  // namespace strobe::cuda
