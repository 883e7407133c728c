#pragma once
// Flash attention, backward. Probabilities are recomputed from the LSE block by block. An item owns
// some keys, whose dk and dv it sums over all queries that see them, and adds up its own share of
// dq: five products, and every sum has one owner, so that the result does not depend on the number
// of threads.

#include "cpu/generic/engine.h"
#include "cpu/generic/logits.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Panels of queries that are taken together, so that dk and dv are read and written once for them.
constexpr std::int64_t kQueryPanels = 4;
/// Keys that stay packed while all queries pass by.
constexpr std::int64_t kChunk = 512;

/// What is needed of one panel of queries.
template <BackwardEngine Engine>
struct PanelBuffers {
  static constexpr int kPanel = Engine::kPanel;

  PanelBuffers() = default;
  PanelBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : panel(scratch.take<Panel<kPanel>>(1)),
        queries(scratch.bytes(Engine::query_panel_bytes(dim))),
        douts(scratch.bytes(Engine::query_panel_bytes(dim_v))),
        lse(scratch.take<float>(kPanel)),
        correction(scratch.take<float>(kPanel)),
        delta(scratch.take<float>(kPanel)) {}

  Panel<kPanel>* panel;
  void* queries;
  void* douts;
  float* lse;  // +inf for lanes without a row and rows that saw nothing: e^(x - inf) is 0
  float* correction;
  float* delta;

  bool load(const HeadTask& task, std::int64_t query, std::int64_t count) const {
    *panel = Panel<kPanel>(&task, query, count);
    for (std::int64_t i = 0; i < kPanel; ++i) {
      const float given = i < count ? task.lse[query + i] : -kInfinity;
      lse[i] = given == -kInfinity ? kInfinity : given;
      correction[i] = i < count ? task.correction[query + i] : 0.0F;
      delta[i] = i < count ? task.delta[query + i] : 0.0F;
    }
    const bool finite = Engine::pack_query_panel(RowsFrom(task.q, task.dtype, query), task.dtype,
                                                 count, task.dim, queries);
    return Engine::pack_query_panel(RowsFrom(task.dout, task.dtype, query), task.dtype, count,
                                    task.dim_v, douts) &&
           finite;
  }
};

/// One block of keys as the scores take them.
template <BackwardEngine Engine>
struct KeyBuffers {
  KeyBuffers() = default;
  KeyBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : keys(scratch.bytes(Engine::key_rows_bytes(Engine::kKeyBlock, dim))),
        values(scratch.bytes(Engine::key_rows_bytes(Engine::kKeyBlock, dim_v))) {}

  void* keys;
  void* values;

  bool load(const HeadTask& task, std::int64_t key, std::int64_t count) const {
    const std::int64_t padded = round_up(count, Engine::kKeyStep);
    const bool finite = Engine::pack_key_rows(RowsFrom(task.k, task.dtype, key), task.dtype, count,
                                              padded, task.dim, keys);
    return Engine::pack_key_rows(RowsFrom(task.v, task.dtype, key), task.dtype, count, padded,
                                 task.dim_v, values) &&
           finite;
  }
};

/// Blocks [kKeyBlock][kPanel] of one panel against one block of keys.
template <BackwardEngine Engine>
struct ScoreBuffers {
  explicit ScoreBuffers(Scratch& scratch)
      : logits(scratch.take<float>(kSize)),
        gradients(scratch.take<float>(kSize)),
        slope(scratch.take<float>(kSize)),
        extra(scratch.take<float>(kSize)) {}

  static constexpr std::int64_t kSize = std::int64_t{Engine::kKeyBlock} * Engine::kPanel;
  float* logits;     // up to the scale that `recompute` returns
  float* gradients;  // of the probabilities, with dropout's zeros and scale
  float* slope;      // derivative of the softcap
  float* extra;      // bias or dropout
};

/// Logits and the gradients of the probabilities. Returns the scale left to apply to the logits.
template <BackwardEngine Engine>
inline float recompute(const Block<Engine::kPanel>& block, Coverage covered,
                       const PanelBuffers<Engine>& panel, const KeyBuffers<Engine>& keys,
                       const ScoreBuffers<Engine>& scores) {
  const HeadTask& task = block.task();
  const std::int64_t rows = round_up(block.keys, Engine::kKeyStep);
  Engine::scores(rows, task.dim, keys.keys, panel.queries, scores.logits);
  const float scale =
      finish_logits(block, covered, rows, scores.logits, scores.slope, scores.extra);
  Engine::scores(rows, task.dim_v, keys.values, panel.douts, scores.gradients);
  if (task.has_dropout) {
    draw_dropout(block, rows, scores.extra);
    for (std::int64_t i = 0; i < rows * Engine::kPanel; i += kWidth)
      store(scores.gradients + i, load(scores.gradients + i) * load(scores.extra + i));
  }
  return scale;
}

/// From what `recompute` left in one vector: the probability as it multiplied the values, and the
/// gradient of the logit, before it goes back through the softcap.
struct Differentiated {
  Vec probability;
  Vec gradient;
};

template <BackwardEngine Engine, class Exp>
STROBE_INLINE Differentiated differentiate(const HeadTask& task, std::int64_t at, int v,
                                           const Exp& exp, const PanelBuffers<Engine>& panel,
                                           const ScoreBuffers<Engine>& scores) {
  const Vec nothing = splat(0.0F);
  Vec raw = exp(load(scores.logits + at));
  // A lane without a row has no probability, even against a key that is NaN.
  if (Engine::kTakesAnything)
    raw = select(equal(load(panel.lse + v * kWidth), splat(kInfinity)), nothing, raw);
  const Vec p = fma(raw, load(panel.correction + v * kWidth), raw);
  Vec dx = p * (load(scores.gradients + at) - load(panel.delta + v * kWidth));
  // A hidden key has no gradient, not even the NaN that 0 times an infinite dp would be.
  if (Engine::kTakesAnything) dx = select(equal(p, nothing), nothing, dx);
  return {task.has_dropout ? p * load(scores.extra + at) : p, dx};
}

/// One block of keys and its sums.
template <BackwardEngine Engine>
struct KeyGradients {
  KeyGradients() = default;
  KeyGradients(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : packed(scratch, dim, dim_v),
        key_columns(scratch.bytes(Engine::key_columns_bytes(Engine::kKeyBlock, dim))),
        dk(scratch.take<float>(Engine::kKeyBlock * round_up(dim, Engine::kColumnStep))),
        dv(scratch.take<float>(Engine::kKeyBlock * round_up(dim_v, Engine::kColumnStep))) {}

  KeyBuffers<Engine> packed;
  void* key_columns;
  float* dk;  // [kKeyBlock][padded dim]
  float* dv;  // [kKeyBlock][padded dim_v]
};

template <BackwardEngine Engine>
struct BackwardBuffers {
  static constexpr int kPanel = Engine::kPanel;
  static constexpr std::int64_t kBlocks = kChunk / Engine::kKeyBlock;

  BackwardBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : padded(round_up(dim, Engine::kColumnStep)),
        padded_v(round_up(dim_v, Engine::kColumnStep)),
        scores(scratch),
        query_rows(scratch.bytes(Engine::query_rows_bytes(kQueryPanels, dim))),
        dout_rows(scratch.bytes(Engine::query_rows_bytes(kQueryPanels, dim_v))),
        probabilities(scratch.bytes(Engine::left_block_bytes(Engine::kKeyBlock, kQueryPanels))),
        gradients(scratch.bytes(Engine::left_block_bytes(Engine::kKeyBlock, kQueryPanels))),
        gradients_right(scratch.bytes(Engine::right_block_bytes(Engine::kKeyBlock))),
        dq(scratch.take<float>(kQueryPanels * kPanel * padded)),
        rows(scratch.take<float>(kPanel * padded)) {
    for (auto& one : panel) one = PanelBuffers<Engine>(scratch, dim, dim_v);
    for (auto& one : block) one = KeyGradients<Engine>(scratch, dim, dim_v);
  }

  std::int64_t padded;
  std::int64_t padded_v;
  ScoreBuffers<Engine> scores;
  void* query_rows;
  void* dout_rows;
  void* probabilities;    // left block
  void* gradients;        // left block
  void* gradients_right;  // the same for dq; not used by an engine with one block for both
  float* dq;              // [panel][padded][kPanel]
  float* rows;            // [kPanel][padded], a panel of dq turned back
  PanelBuffers<Engine> panel[kQueryPanels];
  KeyGradients<Engine> block[kBlocks];
};

/// Probabilities and gradients of one panel against one block of keys, into the engine's blocks,
/// and from there into dq.
template <BackwardEngine Engine, class Exp>
inline void backward_panel(const Block<Engine::kPanel>& block, Coverage covered, std::int64_t p,
                           const KeyGradients<Engine>& keys,
                           const BackwardBuffers<Engine>& buffers) {
  constexpr int kRows = Engine::kBlockRows;
  const HeadTask& task = block.task();
  const PanelBuffers<Engine>& panel = buffers.panel[p];
  const ScoreBuffers<Engine>& scores = buffers.scores;
  const std::int64_t rows = round_up(block.keys, Engine::kKeyStep);
  const float scale = recompute(block, covered, panel, keys.packed, scores);
  for (int v = 0; v < Engine::kPanel / kWidth; ++v) {
    const Exp exp(scale, load(panel.lse + v * kWidth));
    for (std::int64_t j = 0; j < rows; j += kRows) {
      Vec probability[kRows];
      Vec gradient[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t at = (j + r) * Engine::kPanel + v * kWidth;
        const Differentiated d = differentiate(task, at, v, exp, panel, scores);
        probability[r] = d.probability;
        gradient[r] = task.softcap == 0 ? d.gradient : d.gradient * load(scores.slope + at);
      }
      Engine::put_left(buffers.probabilities, rows, p, j, v, probability);
      Engine::put_left(buffers.gradients, rows, p, j, v, gradient);
      if constexpr (!Engine::kOneBlock)
        Engine::put_right(buffers.gradients_right, rows, j, v, gradient);
    }
  }
  const void* right = buffers.gradients_right;
  if constexpr (Engine::kOneBlock) right = Engine::left_panel(buffers.gradients, rows, p);
  Engine::add_panel(task.dim, rows, keys.key_columns, right,
                    buffers.dq + p * Engine::kPanel * buffers.padded);
}

template <BackwardEngine Engine>
inline void hide_panel(std::int64_t rows, std::int64_t p, const BackwardBuffers<Engine>& buffers) {
  Vec nothing[Engine::kBlockRows];
  for (auto& x : nothing) x = splat(0.0F);
  for (std::int64_t j = 0; j < rows; j += Engine::kBlockRows) {
    for (int v = 0; v < Engine::kPanel / kWidth; ++v) {
      Engine::put_left(buffers.probabilities, rows, p, j, v, nothing);
      Engine::put_left(buffers.gradients, rows, p, j, v, nothing);
    }
  }
}

/// The panels that are loaded, against one block of keys from `key` on.
template <BackwardEngine Engine, class Exp>
inline void backward_block(const HeadTask& task, std::int64_t panels, std::int64_t key,
                           std::int64_t keys, const KeyGradients<Engine>& gradients,
                           const BackwardBuffers<Engine>& buffers) {
  const std::int64_t rows = round_up(keys, Engine::kKeyStep);
  const Coverage all = coverage(task, buffers.panel[0].panel->first,
                                buffers.panel[panels - 1].panel->last, key, keys);
  if (all == Coverage::none) return;
  for (std::int64_t p = 0; p < panels; ++p) {
    const Panel<Engine::kPanel>& panel = *buffers.panel[p].panel;
    const Coverage covered = coverage(task, panel.first, panel.last, key, keys);
    if (covered == Coverage::none)
      hide_panel(rows, p, buffers);
    else
      backward_panel<Engine, Exp>({panel, key, keys}, covered, p, gradients, buffers);
  }
  Engine::add_rows(rows, panels, task.dim_v, buffers.probabilities, buffers.dout_rows, gradients.dv,
                   buffers.padded_v);
  Engine::add_rows(rows, panels, task.dim, buffers.gradients, buffers.query_rows, gradients.dk,
                   buffers.padded);
}

/// Adds the block's dq to the item's share of it, or begins it.
template <BackwardEngine Engine>
inline void store_dq(const BackwardItem& item, const HeadTask& task, std::int64_t query,
                     std::int64_t count, bool first, const BackwardBuffers<Engine>& buffers) {
  constexpr int kPanel = Engine::kPanel;
  float* share = item.dq + (&task - item.heads) * task.len_q * task.dim + query * task.dim;
  for (std::int64_t i = 0; i < count; i += kPanel) {
    transpose(buffers.dq + i * buffers.padded, kPanel, task.dim, kPanel, buffers.rows,
              buffers.padded);
    for (std::int64_t lane = 0; lane < smaller(kPanel, count - i); ++lane) {
      const float* row = buffers.rows + lane * buffers.padded;
      float* target = share + (i + lane) * task.dim;
      for (std::int64_t c = 0; c < task.dim; ++c) target[c] = first ? row[c] : target[c] + row[c];
    }
  }
}

/// One head's queries against the chunk of keys that is loaded.
template <BackwardEngine Engine, class Exp>
inline bool backward_head(const BackwardItem& item, const HeadTask& task, std::int64_t key,
                          std::int64_t keys, const BackwardBuffers<Engine>& buffers) {
  constexpr std::int64_t kQueries = kQueryPanels * Engine::kPanel;
  const Span whole = seeing_queries(task, item.key_begin, item.key_end - 1);
  const Span span = seeing_queries(task, key, key + keys - 1);
  // All chunks of the item cut the queries alike, and the first begins every row of the share.
  for (std::int64_t query = whole.begin; query < whole.end; query += kQueries) {
    const std::int64_t count = smaller(kQueries, whole.end - query);
    const bool first = key == item.key_begin;
    if (!first && (query + count <= span.begin || query >= span.end)) continue;
    const std::int64_t panels = (count + Engine::kPanel - 1) / Engine::kPanel;
    bool finite = true;
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t at = p * Engine::kPanel;
      finite =
          buffers.panel[p].load(task, query + at, smaller(Engine::kPanel, count - at)) && finite;
    }
    finite = Engine::pack_query_rows(RowsFrom(task.q, task.dtype, query), task.dtype, count, panels,
                                     task.dim, buffers.query_rows) &&
             finite;
    finite = Engine::pack_query_rows(RowsFrom(task.dout, task.dtype, query), task.dtype, count,
                                     panels, task.dim_v, buffers.dout_rows) &&
             finite;
    if (!finite && !Engine::kTakesAnything) return false;
    fill(buffers.dq, panels * Engine::kPanel * buffers.padded, 0.0F);
    for (std::int64_t b = 0; b * Engine::kKeyBlock < keys; ++b) {
      const std::int64_t from = b * Engine::kKeyBlock;
      backward_block<Engine, Exp>(task, panels, key + from, smaller(Engine::kKeyBlock, keys - from),
                                  buffers.block[b], buffers);
    }
    store_dq(item, task, query, count, first, buffers);
  }
  return true;
}

template <BackwardEngine Engine>
inline void store_keys(const HeadTask& task, std::int64_t key, std::int64_t keys,
                       const BackwardBuffers<Engine>& buffers) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const KeyGradients<Engine>& block = buffers.block[j / Engine::kKeyBlock];
    const std::int64_t row = j % Engine::kKeyBlock;
    narrow_row(block.dk + row * buffers.padded, task.dim, task.scale, task.dtype,
               RowsFrom(task.dk, task.dtype, key + j)(0));
    narrow_row(block.dv + row * buffers.padded_v, task.dim_v, 1.0F, task.dtype,
               RowsFrom(task.dv, task.dtype, key + j)(0));
  }
}

/// False if the engine cannot take what the data holds; another must then do all of the item.
template <BackwardEngine Engine, class Exp>
inline bool backward_item(const BackwardItem& item, void* memory) {
  [[maybe_unused]] const typename Engine::Setup setup;
  const HeadTask& task = *item.heads;
  Scratch scratch(memory);
  const BackwardBuffers<Engine> buffers(scratch, task.dim, task.dim_v);
  for (std::int64_t key = item.key_begin; key < item.key_end; key += kChunk) {
    const std::int64_t keys = smaller(kChunk, item.key_end - key);
    bool finite = true;
    for (std::int64_t b = 0; b * Engine::kKeyBlock < keys; ++b) {
      const KeyGradients<Engine>& block = buffers.block[b];
      const std::int64_t from = b * Engine::kKeyBlock;
      const std::int64_t count = smaller(Engine::kKeyBlock, keys - from);
      finite = block.packed.load(task, key + from, count) && finite;
      finite = Engine::pack_key_columns(RowsFrom(task.k, task.dtype, key + from), task.dtype, count,
                                        round_up(count, Engine::kKeyStep), task.dim,
                                        block.key_columns) &&
               finite;
      fill(block.dk, Engine::kKeyBlock * buffers.padded, 0.0F);
      fill(block.dv, Engine::kKeyBlock * buffers.padded_v, 0.0F);
    }
    if (!finite && !Engine::kTakesAnything) return false;
    for (std::int64_t h = 0; h < item.group; ++h) {
      if (!backward_head<Engine, Exp>(item, item.heads[h], key, keys, buffers)) return false;
    }
    store_keys(task, key, keys, buffers);
  }
  return true;
}

inline void sum_dq(const HeadTask& task, std::int64_t begin, std::int64_t end, float* shares,
                   std::int64_t splits, std::int64_t stride, std::int64_t split_keys) {
  for (std::int64_t query = begin; query < end; ++query) {
    float* row = shares + (query - begin) * task.dim;
    bool any = false;
    for (std::int64_t s = 0; s < splits; ++s) {
      const std::int64_t last = smaller(task.len_k, (s + 1) * split_keys) - 1;
      const Span span = seeing_queries(task, s * split_keys, last);
      if (query < span.begin || query >= span.end) continue;
      const float* share = row + s * stride;
      for (std::int64_t c = 0; c < task.dim; ++c) row[c] = any ? row[c] + share[c] : share[c];
      any = true;
    }
    if (!any) fill(row, task.dim, 0.0F);
    narrow_row(row, task.dim, task.scale, task.dtype, RowsFrom(task.dq, task.dtype, query)(0));
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
