#pragma once
// Flash attention, backward. Probabilities are recomputed from the LSE block by block. Three
// passes: row statistics and dq go over query blocks, dk and dv over key blocks, so that every sum
// has one owner and the result does not depend on the number of threads.
//
// The statistics could be had more cheaply: take exp(x - lse) as it is, and delta = dout . out. But
// the LSE is rounded to float32, which puts an error of half its last place into every probability
// of the row, and `out` is rounded to the dtype; both are larger than what the unfused computation
// makes on short rows. So the row sums are taken from the recomputed probabilities themselves.

#include "cpu/generic/logits.h"
#include "cpu/generic/scratch.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// What every gradient needs of one panel of queries against one block of keys.
struct GradientBuffers {
  GradientBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : queries(scratch.take(kPanel * dim)),
        douts(scratch.take(kPanel * dim_v)),
        lse(scratch.take(kPanel)),
        correction(scratch.take(kPanel)),
        delta(scratch.take(kPanel)),
        keys(scratch.take(kKeyBlock * dim)),
        values(scratch.take(kKeyBlock * dim_v)),
        probabilities(scratch.take(kKeyBlock * kPanel)),
        gradients(scratch.take(kKeyBlock * kPanel)),
        slope(scratch.take(kKeyBlock * kPanel)),
        extra(scratch.take(kKeyBlock * kPanel)),
        staging(scratch.take(kPackRows * larger(larger(dim, dim_v), kKeyBlock))) {}

  float* queries;        // [dim][kPanel]
  float* douts;          // [dim_v][kPanel]
  float* lse;            // [kPanel], +inf for lanes without a row and rows that saw nothing
  float* correction;     // [kPanel]
  float* delta;          // [kPanel]
  float* keys;           // packs
  float* values;         // packs
  float* probabilities;  // [kKeyBlock][kPanel], after dropout: what multiplied the values
  float* gradients;      // [kKeyBlock][kPanel], of the logits before bias and ALiBi
  float* slope;          // [kKeyBlock][kPanel], derivative of the softcap
  float* extra;          // [kKeyBlock][kPanel], bias or dropout
  float* staging;
};

inline void load_panel(const HeadTask& task, std::int64_t query, std::int64_t count,
                       const GradientBuffers& buffers) {
  pack_transposed(task.q, task.dtype, query, count, task.dim, kPanel, buffers.queries,
                  buffers.staging);
  pack_transposed(task.dout, task.dtype, query, count, task.dim_v, kPanel, buffers.douts,
                  buffers.staging);
  for (std::int64_t i = 0; i < kPanel; ++i) {
    const float lse = i < count ? task.lse[query + i] : -kInfinity;
    buffers.lse[i] = lse == -kInfinity ? kInfinity : lse;  // exp(x - inf) is 0
  }
}

/// The results of row_statistics, for the passes after it.
inline void load_statistics(const HeadTask& task, std::int64_t query, std::int64_t count,
                            const GradientBuffers& buffers) {
  for (std::int64_t i = 0; i < kPanel; ++i) {
    buffers.correction[i] = i < count ? task.correction[query + i] : 0.0F;
    buffers.delta[i] = i < count ? task.delta[query + i] : 0.0F;
  }
}

inline void load_keys(const HeadTask& task, std::int64_t key, std::int64_t keys,
                      const GradientBuffers& buffers) {
  pack_tiles(task.k, task.dtype, key, keys, task.dim, buffers.keys, buffers.staging);
  pack_tiles(task.v, task.dtype, key, keys, task.dim_v, buffers.values, buffers.staging);
}

/// Logits into buffers.probabilities, dp (with dropout's zeros and scale) into buffers.gradients,
/// dropout into buffers.extra. Returns false if the mask hides all of the block.
inline bool recompute(const HeadTask& task, const Block& block, const GradientBuffers& buffers) {
  const Coverage covered = coverage(task, block);
  if (covered == Coverage::none) return false;
  multiply_scores(block.keys, task.dim, buffers.keys, buffers.queries, task.scale,
                  buffers.probabilities);
  finish_logits(task, block, covered, buffers.probabilities, buffers.slope, buffers.extra,
                buffers.staging);
  multiply_scores(block.keys, task.dim_v, buffers.values, buffers.douts, 1.0F, buffers.gradients);
  if (task.has_dropout) {
    draw_dropout(task, block, buffers.extra);
    for_each_vector(block.keys, [&](std::int64_t j, int v) {
      const std::int64_t at = j * kPanel + v * kWidth;
      store(buffers.gradients + at, load(buffers.gradients + at) * load(buffers.extra + at));
    });
  }
  return true;
}

/// After `recompute`: probabilities as they multiplied the values, and gradients of the logits.
inline void differentiate(const HeadTask& task, const Block& block,
                          const GradientBuffers& buffers) {
  for_each_vector(block.keys, [&](std::int64_t j, int v) {
    const std::int64_t at = j * kPanel + v * kWidth;
    const Vec logit = load(buffers.probabilities + at);
    const Vec raw = exp_difference(logit, load(buffers.lse + v * kWidth));
    const Vec p = fma(raw, load(buffers.correction + v * kWidth), raw);
    const Vec dx = p * (load(buffers.gradients + at) - load(buffers.delta + v * kWidth));
    store(buffers.probabilities + at, task.has_dropout ? p * load(buffers.extra + at) : p);
    // A hidden key has no gradient, not even the NaN that 0 times an infinite dp would be.
    store(buffers.gradients + at, select(equal(logit, splat(-kInfinity)), splat(0.0F), dx));
  });
}

/// Takes the gradient of the logits back through the softcap.
inline void through_softcap(const HeadTask& task, std::int64_t keys,
                            const GradientBuffers& buffers) {
  if (task.softcap == 0) return;
  for_each_vector(keys, [&](std::int64_t j, int v) {
    float* dx = buffers.gradients + j * kPanel + v * kWidth;
    store(dx, load(dx) * load(buffers.slope + j * kPanel + v * kWidth));
  });
}

/// Adds one block's sums of p and of p * dp, lane by lane.
inline void add_statistics(std::int64_t keys, const GradientBuffers& buffers, float* sums) {
  for (int v = 0; v < kTileVecs; ++v) {
    Vec sum = splat(0.0F);
    Vec dot = splat(0.0F);
    const Vec lse = load(buffers.lse + v * kWidth);
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t at = j * kPanel + v * kWidth;
      const Vec p = exp_difference(load(buffers.probabilities + at), lse);
      sum = sum + p;
      const Vec more = fma(p, load(buffers.gradients + at), dot);
      dot = select(equal(p, splat(0.0F)), dot, more);  // hidden: not even 0 * infinity
    }
    store(sums + v * kWidth, load(sums + v * kWidth) + sum);
    store(buffers.delta + v * kWidth, load(buffers.delta + v * kWidth) + dot);
  }
}

/// From the sums of a panel to the row statistics of the task.
inline void store_statistics(const HeadTask& task, std::int64_t query, std::int64_t count,
                             const GradientBuffers& buffers, const float* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool empty = buffers.lse[i] == kInfinity;
    // One, but for the rounding of the LSE.
    const double sum = sums[i] + (task.has_sink ? ::exp(double{task.sink} - buffers.lse[i]) : 0.0);
    const float correction = empty ? 0.0F : static_cast<float>((1.0 - sum) / sum);
    task.correction[query + i] = correction;
    task.delta[query + i] = buffers.delta[i] + buffers.delta[i] * correction;
  }
}

inline void row_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end,
                           void* memory) {
  Scratch scratch(memory);
  const GradientBuffers buffers(scratch, task.dim, task.dim_v);
  for (std::int64_t query = begin; query < end; query += kPanel) {
    const std::int64_t count = smaller(kPanel, end - query);
    load_panel(task, query, count, buffers);
    float sums[kPanel] = {};
    fill(buffers.delta, kPanel, 0.0F);
    const Span span = visible_keys(task, query, query + count - 1);
    for (std::int64_t key = span.begin; key < span.end; key += kKeyBlock) {
      const Block block{query, count, key, smaller(kKeyBlock, span.end - key)};
      load_keys(task, key, block.keys, buffers);
      if (recompute(task, block, buffers)) add_statistics(block.keys, buffers, sums);
    }
    store_statistics(task, query, count, buffers, sums);
  }
}

inline void grad_q(const HeadTask& task, std::int64_t begin, std::int64_t end, void* memory) {
  Scratch scratch(memory);
  const GradientBuffers buffers(scratch, task.dim, task.dim_v);
  const std::int64_t padded = round_up(task.dim, kPackRows);
  float* key_rows = scratch.take(kKeyBlock * padded);  // [kKeyBlock][padded]
  float* sums = scratch.take(kPanel * padded);         // [padded][kPanel]
  float* rows = scratch.take(kPanel * padded);         // [kPanel][padded]
  for (std::int64_t query = begin; query < end; query += kPanel) {
    const std::int64_t count = smaller(kPanel, end - query);
    load_panel(task, query, count, buffers);
    load_statistics(task, query, count, buffers);
    fill(sums, kPanel * padded, 0.0F);
    const Span span = visible_keys(task, query, query + count - 1);
    for (std::int64_t key = span.begin; key < span.end; key += kKeyBlock) {
      const Block block{query, count, key, smaller(kKeyBlock, span.end - key)};
      load_keys(task, key, block.keys, buffers);
      const bool finite =
          widen_rows(task.k, task.dtype, key, block.keys, task.dim, padded, key_rows);
      if (!recompute(task, block, buffers)) continue;
      differentiate(task, block, buffers);
      through_softcap(task, block.keys, buffers);
      accumulate_panel(finite, padded, block.keys, key_rows, padded, buffers.gradients, nullptr,
                       sums);
    }
    transpose(sums, kPanel, task.dim, kPanel, rows, padded);
    narrow_rows(rows, padded, count, task.dim, task.scale, task.dq, task.dtype, query);
  }
}

/// Sums of one key block, at the front of its scratch so that the three steps find them again.
struct KeyGradients {
  KeyGradients(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : padded(round_up(dim, kWidth)),
        padded_v(round_up(dim_v, kWidth)),
        dk(scratch.take(kKeyBlock * padded)),
        dv(scratch.take(kKeyBlock * padded_v)) {}

  std::int64_t padded;
  std::int64_t padded_v;
  float* dk;  // [kKeyBlock][padded]
  float* dv;  // [kKeyBlock][padded_v]
};

inline void grad_kv_start(const HeadTask& task, std::int64_t, std::int64_t, void* memory) {
  Scratch scratch(memory);
  const KeyGradients sums(scratch, task.dim, task.dim_v);
  fill(sums.dk, kKeyBlock * sums.padded, 0.0F);
  fill(sums.dv, kKeyBlock * sums.padded_v, 0.0F);
}

inline void grad_kv_add(const HeadTask& task, std::int64_t begin, std::int64_t end, void* memory) {
  Scratch scratch(memory);
  const KeyGradients sums(scratch, task.dim, task.dim_v);
  const GradientBuffers buffers(scratch, task.dim, task.dim_v);
  float* query_rows = scratch.take(kPanel * sums.padded);   // [kPanel][padded]
  float* dout_rows = scratch.take(kPanel * sums.padded_v);  // [kPanel][padded_v]
  const std::int64_t keys = end - begin;
  load_keys(task, begin, keys, buffers);
  const Span span = seeing_queries(task, begin, end - 1);
  for (std::int64_t query = span.begin; query < span.end; query += kPanel) {
    const Block block{query, smaller(kPanel, span.end - query), begin, keys};
    load_panel(task, query, block.count, buffers);
    load_statistics(task, query, block.count, buffers);
    if (!recompute(task, block, buffers)) continue;
    differentiate(task, block, buffers);
    const bool finite_q =
        widen_rows(task.q, task.dtype, query, block.count, task.dim, sums.padded, query_rows);
    const bool finite_dout =
        widen_rows(task.dout, task.dtype, query, block.count, task.dim_v, sums.padded_v, dout_rows);
    accumulate_rows(finite_dout, keys, block.count, buffers.probabilities, dout_rows, sums.padded_v,
                    sums.dv);
    through_softcap(task, keys, buffers);
    accumulate_rows(finite_q, keys, block.count, buffers.gradients, query_rows, sums.padded,
                    sums.dk);
  }
}

inline void grad_kv_finish(const HeadTask& task, std::int64_t begin, std::int64_t end,
                           void* memory) {
  Scratch scratch(memory);
  const KeyGradients sums(scratch, task.dim, task.dim_v);
  narrow_rows(sums.dk, sums.padded, end - begin, task.dim, task.scale, task.dk, task.dtype, begin);
  narrow_rows(sums.dv, sums.padded_v, end - begin, task.dim_v, 1.0F, task.dv, task.dtype, begin);
}

inline void grad_bias_add(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                          std::int64_t k_begin, std::int64_t k_end, float* sums, void* memory) {
  Scratch scratch(memory);
  const GradientBuffers buffers(scratch, task.dim, task.dim_v);
  const std::int64_t keys = k_end - k_begin;
  load_keys(task, k_begin, keys, buffers);
  for (std::int64_t query = q_begin; query < q_end; query += kPanel) {
    const Block block{query, smaller(kPanel, q_end - query), k_begin, keys};
    load_panel(task, query, block.count, buffers);
    load_statistics(task, query, block.count, buffers);
    if (!recompute(task, block, buffers)) continue;
    differentiate(task, block, buffers);
    for (std::int64_t i = 0; i < block.count; ++i) {
      float* row = sums + (task.bias_per_query ? (query - q_begin + i) * kKeyBlock : 0);
      for (std::int64_t j = 0; j < keys; ++j) row[j] += buffers.gradients[j * kPanel + i];
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
