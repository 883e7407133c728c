#pragma once
// Flash attention, forward: queries in the lanes, keys in blocks, softmax on the way.

#include "cpu/generic/logits.h"
#include "cpu/generic/scratch.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Buffers of the forward pass. "padded" means up to whole tiles.
struct ForwardBuffers {
  ForwardBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : padded_v(round_up(dim_v, kPackRows)),
        queries(scratch.take(kQueryBlock * dim)),
        sums(scratch.take(kQueryBlock * padded_v)),
        row_max(scratch.take(kQueryBlock)),
        row_sum(scratch.take(kQueryBlock)),
        keys(scratch.take(kKeyBlock * dim)),
        values(scratch.take(kKeyBlock * padded_v)),
        scores(scratch.take(kKeyBlock * kPanel)),
        extra(scratch.take(kKeyBlock * kPanel)),
        staging(scratch.take(kPackRows * larger(larger(dim, dim_v), kKeyBlock))),
        rows(scratch.take(kPanel * padded_v)) {}

  std::int64_t padded_v;
  float* queries;  // [panel][dim][kPanel]
  float* sums;     // [panel][padded_v][kPanel], the output before division
  float* row_max;  // [panel][kPanel]
  float* row_sum;
  float* keys;    // packs, see pack_tiles
  float* values;  // [kKeyBlock][padded_v]
  float* scores;  // [kKeyBlock][kPanel]
  float* extra;   // [kKeyBlock][kPanel], bias or dropout
  float* staging;
  float* rows;  // [kPanel][padded_v], a panel of the output turned back
};

/// One step of the online softmax: logits become probabilities relative to the new maximum, and
/// `keep` what the sums so far must be multiplied with.
STROBE_INLINE void online_softmax(std::int64_t keys, float* scores, float* row_max, float* row_sum,
                                  float* keep) {
  Vec peak[kTileVecs];
  for (int v = 0; v < kTileVecs; ++v) peak[v] = load(row_max + v * kWidth);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kTileVecs; ++v)
      peak[v] = max(load(scores + j * kPanel + v * kWidth), peak[v]);
  }
  Vec sum[kTileVecs];
  Vec base[kTileVecs];  // the maximum, or 0 where nothing was visible yet: -inf - 0 gives exp 0
  for (int v = 0; v < kTileVecs; ++v) {
    base[v] = select(equal(peak[v], splat(-kInfinity)), splat(0.0F), peak[v]);
    const Vec factor = exp_difference(load(row_max + v * kWidth), base[v]);
    store(keep + v * kWidth, factor);
    sum[v] = splat(0.0F);
    store(row_max + v * kWidth, peak[v]);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kTileVecs; ++v) {
      float* x = scores + j * kPanel + v * kWidth;
      const Vec p = exp_difference(load(x), base[v]);
      store(x, p);
      sum[v] = sum[v] + p;
    }
  }
  for (int v = 0; v < kTileVecs; ++v) {
    float* total = row_sum + v * kWidth;
    store(total, fma(load(total), load(keep + v * kWidth), sum[v]));
  }
}

inline void apply_dropout(const HeadTask& task, const Block& block, float* scores, float* keep) {
  draw_dropout(task, block, keep);
  for_each_vector(block.keys, [&](std::int64_t j, int v) {
    float* p = scores + j * kPanel + v * kWidth;
    store(p, load(p) * load(keep + j * kPanel + v * kWidth));
  });
}

/// One panel against one block of keys.
inline void forward_panel(const HeadTask& task, const Block& block, bool finite_values,
                          std::int64_t panel, const ForwardBuffers& buffers) {
  const Coverage covered = coverage(task, block);
  if (covered == Coverage::none) return;
  multiply_scores(block.keys, task.dim, buffers.keys, buffers.queries + panel * kPanel * task.dim,
                  task.scale, buffers.scores);
  finish_logits(task, block, covered, buffers.scores, nullptr, buffers.extra, buffers.staging);
  float keep[kPanel];
  online_softmax(block.keys, buffers.scores, buffers.row_max + panel * kPanel,
                 buffers.row_sum + panel * kPanel, keep);
  if (task.has_dropout) apply_dropout(task, block, buffers.scores, buffers.extra);
  accumulate_panel(finite_values, buffers.padded_v, block.keys, buffers.values, buffers.padded_v,
                   buffers.scores, keep, buffers.sums + panel * kPanel * buffers.padded_v);
}

/// Divides by the row sums and stores one panel. The sink joins the softmax here: a logit without
/// a value. A row that sees no key stays empty, sink or not.
inline void store_panel(const HeadTask& task, std::int64_t query, std::int64_t count,
                        std::int64_t panel, const ForwardBuffers& buffers) {
  transpose(buffers.sums + panel * kPanel * buffers.padded_v, kPanel, task.dim_v, kPanel,
            buffers.rows, buffers.padded_v);
  for (std::int64_t i = 0; i < count; ++i) {
    const double peak = buffers.row_max[panel * kPanel + i];
    const bool empty = peak == -kInfinity;
    const double top = task.has_sink && task.sink > peak ? task.sink : peak;
    const double share = empty ? 0.0 : ::exp(peak - top);  // 1 unless the sink is above the keys
    const double sum = buffers.row_sum[panel * kPanel + i] * share +
                       (task.has_sink ? ::exp(task.sink - top) : 0.0);
    const float factor = empty ? 0.0F : static_cast<float>(share / sum);
    narrow_rows(buffers.rows + i * buffers.padded_v, 0, 1, task.dim_v, factor, task.out, task.dtype,
                query + i);
    if (task.lse != nullptr) {
      task.lse[query + i] = empty ? -kInfinity : static_cast<float>(top + ::log(sum));
    }
  }
}

inline void forward(const HeadTask& task, std::int64_t begin, std::int64_t end, void* memory) {
  Scratch scratch(memory);
  const ForwardBuffers buffers(scratch, task.dim, task.dim_v);
  const std::int64_t panels = (end - begin + kPanel - 1) / kPanel;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t query = begin + panel * kPanel;
    pack_transposed(task.q, task.dtype, query, smaller(kPanel, end - query), task.dim, kPanel,
                    buffers.queries + panel * kPanel * task.dim, buffers.staging);
  }
  fill(buffers.sums, panels * kPanel * buffers.padded_v, 0.0F);
  fill(buffers.row_max, panels * kPanel, -kInfinity);
  fill(buffers.row_sum, panels * kPanel, 0.0F);

  const Span span = visible_keys(task, begin, end - 1);
  for (std::int64_t key = span.begin; key < span.end; key += kKeyBlock) {
    const std::int64_t keys = smaller(kKeyBlock, span.end - key);
    pack_tiles(task.k, task.dtype, key, keys, task.dim, buffers.keys, buffers.staging);
    const bool finite =
        widen_rows(task.v, task.dtype, key, keys, task.dim_v, buffers.padded_v, buffers.values);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t query = begin + panel * kPanel;
      forward_panel(task, {query, smaller(kPanel, end - query), key, keys}, finite, panel, buffers);
    }
  }
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t query = begin + panel * kPanel;
    store_panel(task, query, smaller(kPanel, end - query), panel, buffers);
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
