#pragma once
// What becomes of the sums of a row once all of its keys are in them: output and LSE.

#include <math.h>

#include "cpu/generic/pack.h"
#include "cpu/generic/panel.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// The end of a softmax: what the sums of a row are multiplied by, and its LSE.
struct RowEnds {
  Vec factor;
  Vec lse;
};

/// The sink joins here, a logit without a value; minus infinity where there is none. A row that
/// sees no key stays empty, sink or not.
inline RowEnds end_rows(Vec base, Vec row_sum, Vec sink) {
  const Vec nothing = splat(-kInfinity);
  const Vec top = select(less(base, sink), sink, base);
  const Vec share = exp_difference(base, top);  // 1 unless the sink is above the keys
  const Vec sum = fma(row_sum, share, exp_difference(sink, top));
  // Zero where nothing was seen; not so if all there was is NaN.
  const Vec seen = select(equal(base, nothing), row_sum, splat(1.0F));
  const Mask empty = equal(seen, splat(0.0F));
  return {select(empty, splat(0.0F), share / sum), select(empty, nothing, add_log(top, sum))};
}

/// Stores the LSE of a panel's rows and gives what their sums are multiplied by.
template <int lanes>
inline void finish_rows(const Panel<lanes>& panel, const float* base, const float* row_sum,
                        float* factor) {
  const bool sinks = panel.head[0]->has_sink;
  const LaneValues<lanes> sink(
      [&](int lane) { return sinks ? panel.head[lane]->sink : -kInfinity; });
  float lse[lanes];
  for (int v = 0; v < lanes / kWidth; ++v) {
    const int at = v * kWidth;
    const RowEnds ends = end_rows(load(base + at), load(row_sum + at), sink[v]);
    store(factor + at, ends.factor);
    store(lse + at, ends.lse);
  }
  if (panel.head[0]->lse == nullptr) return;
  if (panel.of_one_head()) {
    float* target = panel.head[0]->lse + panel.first;
    for (std::int64_t i = 0; i < panel.count; ++i) target[i] = lse[i];
    return;
  }
  for (std::int64_t i = 0; i < panel.count; ++i) panel.head[i]->lse[panel.query[i]] = lse[i];
}

/// Adds up the splits of one row where the first lies.
inline void merge_row(std::int64_t dim_v, float* first, std::int64_t splits, std::int64_t stride,
                      float& base, float& row_sum) {
  const auto part = [&](std::int64_t split) { return first + split * stride; };
  base = -kInfinity;
  for (std::int64_t s = 0; s < splits; ++s) {
    const float other = part(s)[dim_v];
    base = other > base ? other : base;
  }
  row_sum = 0;
  for (std::int64_t s = 0; s < splits; ++s) {
    const float* sums = part(s);
    // Split 0 is where the sum is made, so it is always taken; a split that saw nothing is zero.
    const float factor =
        sums[dim_v] == -kInfinity ? 0.0F : static_cast<float>(::exp(sums[dim_v] - base));
    row_sum += sums[dim_v + 1] * factor;
    for (std::int64_t c = 0; c < dim_v; ++c)
      first[c] = s == 0 ? sums[c] * factor : first[c] + sums[c] * factor;
  }
}

inline void merge(const ForwardItem& item, std::int64_t splits, std::int64_t stride) {
  const HeadTask& task = *item.heads;
  const auto first = [&](std::int64_t row) {
    return item.partial + (row - item.row_begin) * (task.dim_v + 2);
  };
  for (std::int64_t row = item.row_begin; row < item.row_end; row += kWidth) {
    const Panel<kWidth> panel(item.heads, row, smaller(kWidth, item.row_end - row));
    float base[kWidth] = {};
    float row_sum[kWidth] = {};
    for (std::int64_t i = 0; i < panel.count; ++i)
      merge_row(task.dim_v, first(row + i), splits, stride, base[i], row_sum[i]);
    float factor[kWidth];
    finish_rows(panel, base, row_sum, factor);
    for (std::int64_t i = 0; i < panel.count; ++i)
      narrow_row(first(row + i), task.dim_v, factor[i], task.dtype,
                 panel.row_of(&HeadTask::out, i));
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
