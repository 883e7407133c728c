#pragma once
// Flash attention, forward: queries in the lanes, keys in blocks, softmax on the way.

#include <math.h>

#include "cpu/generic/engine.h"
#include "cpu/generic/logits.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <ForwardEngine Engine>
struct ForwardBuffers {
  static constexpr int kPanel = Engine::kPanel;
  static constexpr std::int64_t kKeyBlock = Engine::kKeyBlock;

  ForwardBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v, std::int64_t rows)
      : panels((rows + kPanel - 1) / kPanel),
        padded_v(round_up(dim_v, Engine::kColumnStep)),
        panel_bytes(round_up(Engine::query_panel_bytes(dim), 64)),
        panel(scratch.take<Panel<kPanel>>(panels)),
        queries(scratch.take<char>(panels * panel_bytes)),
        sums(scratch.take<float>(panels * kPanel * padded_v)),
        base(scratch.take<float>(panels * kPanel)),
        row_sum(scratch.take<float>(panels * kPanel)),
        keys(scratch.bytes(Engine::key_rows_bytes(kKeyBlock, dim))),
        values(scratch.bytes(Engine::key_columns_bytes(kKeyBlock, dim_v))),
        extra(scratch.take<float>(kKeyBlock * kPanel)),
        rows_out(scratch.take<float>(kPanel * padded_v)) {
    for (auto& one : slot) {
      one.scores = scratch.take<float>(kKeyBlock * kPanel);
      one.probabilities = scratch.bytes(Engine::right_block_bytes(kKeyBlock));
    }
  }

  std::int64_t panels;
  std::int64_t padded_v;  // up to whole tiles
  std::int64_t panel_bytes;
  Panel<kPanel>* panel;
  char* queries;    // packed panels
  float* sums;      // [panel][padded_v][kPanel], the output before division
  float* base;      // [panel][kPanel], what the exponents are relative to, see advance_base
  float* row_sum;   // [panel][kPanel]
  void* keys;       // packed rows
  void* values;     // packed columns
  float* extra;     // [kKeyBlock][kPanel], bias or dropout
  float* rows_out;  // [kPanel][padded_v], a panel of the output turned back

  /// What one panel and one block of keys make of each other; two of them where products overlap
  /// with exponentials.
  struct Slot {
    float* scores;  // [kKeyBlock][kPanel]
    void* probabilities;
  };
  Slot slot[Engine::Background::kOverlaps ? 2 : 1];
};

/// Exponents are taken relative to a base near the largest logit so far. It is moved only where a
/// logit lies more than this above it: e^8 leaves room enough in a float, and in most blocks the
/// sums need no rescaling.
constexpr float kSlack = 8.0F;

/// Moves the base of every lane that needs it and rescales that lane's sums [columns][lanes].
template <int lanes>
inline void advance_base(std::int64_t rows, const float* scores, float scale, std::int64_t columns,
                         float* base, float* row_sum, float* sums) {
  constexpr int kVecs = lanes / kWidth;
  Vec peak[kVecs];
  for (int v = 0; v < kVecs; ++v) peak[v] = splat(-kInfinity);
  for (std::int64_t j = 0; j < rows; ++j) {
    for (int v = 0; v < kVecs; ++v) peak[v] = max(load(scores + j * lanes + v * kWidth), peak[v]);
  }
  float keep[lanes];
  bool moved = false;
  for (int v = 0; v < kVecs; ++v) {
    const Vec before = load(base + v * kWidth);
    const Vec top = peak[v] * splat(scale);
    const Mask higher = less(before + splat(kSlack), top);
    const Vec after = select(higher, top, before);
    store(base + v * kWidth, after);
    store(keep + v * kWidth, select(higher, exp_difference(before, after), splat(1.0F)));
  }
  for (int lane = 0; lane < lanes; ++lane) moved = moved || keep[lane] != 1.0F;
  if (!moved) return;
  for (int v = 0; v < kVecs; ++v) {
    const Vec factor = load(keep + v * kWidth);
    store(row_sum + v * kWidth, load(row_sum + v * kWidth) * factor);
    for (std::int64_t c = 0; c < columns; ++c) {
      float* x = sums + c * lanes + v * kWidth;
      store(x, load(x) * factor);
    }
  }
}

/// Logits to probabilities relative to the base, handed to the engine; adds them to the row sums.
/// `keep` [rows][lanes] is what dropout leaves of them, null without.
template <ForwardEngine Engine, class Exp>
STROBE_INLINE void exponentiate(std::int64_t rows, const float* scores, float scale,
                                const float* base, const float* keep, float* row_sum,
                                void* probabilities, typename Engine::Background& background) {
  constexpr int kLanes = Engine::kPanel;
  constexpr int kRows = Engine::kBlockRows;
  constexpr int kVectors = Engine::kBlockVectors;
  background.pace(rows / kRows * (kLanes / kWidth / kVectors), 1);
  for (int first = 0; first < kLanes / kWidth; first += kVectors) {
    Exp exp[kVectors];
    Vec sum[kRows][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      // Where nothing was visible yet the base is -inf; relative to 0, e^-inf is 0 all the same.
      const Vec reference = load(base + (first + v) * kWidth);
      exp[v] = Exp(scale, select(equal(reference, splat(-kInfinity)), splat(0.0F), reference));
      for (auto& row : sum) row[v] = splat(0.0F);
    }
    for (std::int64_t j = 0; j < rows; j += kRows) {
      Vec p[kRows][kVectors];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const std::int64_t at = (j + r) * kLanes + (first + v) * kWidth;
          p[r][v] = exp[v](load(scores + at));
          sum[r][v] = sum[r][v] + p[r][v];
          if (keep != nullptr) p[r][v] = p[r][v] * load(keep + at);
        }
      }
      Engine::put_right(probabilities, rows, j, first, p);
      background.advance();
    }
    for (int v = 0; v < kVectors; ++v) {
      Vec total = sum[0][v];
      for (int r = 1; r < kRows; ++r) total = total + sum[r][v];
      float* target = row_sum + (first + v) * kWidth;
      store(target, load(target) + total);
    }
  }
}

/// A block of keys that is packed in the buffers.
struct PackedKeys {
  std::int64_t key;
  std::int64_t keys;
  std::int64_t rows;  // with padding
};

/// Scores of one panel to probabilities.
template <ForwardEngine Engine, class Exp>
inline void softmax_panel(std::int64_t p, const PackedKeys& packed, int slot,
                          const ForwardBuffers<Engine>& buffers,
                          typename Engine::Background& background) {
  constexpr int kPanel = Engine::kPanel;
  const Block<kPanel> block{buffers.panel[p], packed.key, packed.keys};
  const HeadTask& task = block.task();
  const Coverage covered =
      coverage(task, block.panel.first, block.panel.last, packed.key, packed.keys);
  float* scores = buffers.slot[slot].scores;
  const float scale = finish_logits(block, covered, packed.rows, scores, nullptr, buffers.extra);
  float* base = buffers.base + p * kPanel;
  float* row_sum = buffers.row_sum + p * kPanel;
  advance_base<kPanel>(packed.rows, scores, scale, buffers.padded_v, base, row_sum,
                       buffers.sums + p * kPanel * buffers.padded_v);
  if (task.has_dropout) draw_dropout(block, packed.rows, buffers.extra);
  exponentiate<Engine, Exp>(packed.rows, scores, scale, base,
                            task.has_dropout ? buffers.extra : nullptr, row_sum,
                            buffers.slot[slot].probabilities, background);
}

/// All panels against the packed keys, one after the other.
template <ForwardEngine Engine, class Exp>
inline void forward_block(const HeadTask& task, const PackedKeys& packed,
                          const ForwardBuffers<Engine>& buffers) {
  const auto sees = [&](std::int64_t p) {
    const auto& panel = buffers.panel[p];
    return coverage(task, panel.first, panel.last, packed.key, packed.keys) != Coverage::none;
  };
  // The keys up to the last that the panel sees.
  const auto seen = [&](std::int64_t p) -> PackedKeys {
    if (!Engine::kTakesPart) return packed;
    const auto& panel = buffers.panel[p];
    const std::int64_t keys =
        smaller(packed.keys, visible_keys(task, panel.first, panel.last).end - packed.key);
    return {packed.key, keys, round_up(keys, Engine::kKeyStep)};
  };
  const auto scores = [&](auto& engine, std::int64_t p, int slot) {
    engine.scores(seen(p).rows, task.dim, buffers.keys, buffers.queries + p * buffers.panel_bytes,
                  buffers.slot[slot].scores);
  };
  const auto add_panel = [&](auto& engine, std::int64_t p, int slot) {
    engine.add_panel(task.dim_v, seen(p).rows, buffers.values, buffers.slot[slot].probabilities,
                     buffers.sums + p * Engine::kPanel * buffers.padded_v);
  };
  typename Engine::Background background;
  if constexpr (!Engine::Background::kOverlaps) {
    Engine engine;
    for (std::int64_t p = 0; p < buffers.panels; ++p) {
      if (!sees(p)) continue;
      scores(engine, p, 0);
      softmax_panel<Engine, Exp>(p, seen(p), 0, buffers, background);
      add_panel(engine, p, 0);
    }
  } else {
    // While one panel's exponentials are taken, the scores of the next and the sums of the one
    // before are multiplied.
    const auto seeing = [&](std::int64_t p) {
      while (p < buffers.panels && !sees(p)) ++p;
      return p;
    };
    std::int64_t p = seeing(0);
    if (p < buffers.panels) scores(background, p, 0);
    background.finish();
    for (int slot = 0; p < buffers.panels; slot = 1 - slot) {
      const std::int64_t next = seeing(p + 1);
      if (next < buffers.panels) scores(background, next, 1 - slot);
      softmax_panel<Engine, Exp>(p, seen(p), slot, buffers, background);
      background.finish();
      add_panel(background, p, slot);
      p = next;
    }
    background.finish();
  }
}

/// Divides one row by its sum and stores it. The sink joins the softmax here: a logit without a
/// value. A row that sees no key stays empty, sink or not.
inline void finish_row(const HeadTask& task, std::int64_t query, const float* row, double base,
                       double row_sum) {
  const bool empty = base == -kInfinity && row_sum == 0;  // not so if all it sees is NaN
  const double top = task.has_sink && task.sink > base ? task.sink : base;
  // 1 unless the sink is above the keys.
  const double share = empty ? 0.0 : top == base ? 1.0 : ::exp(base - top);
  const double sum = row_sum * share + (task.has_sink ? ::exp(task.sink - top) : 0.0);
  const float factor = empty ? 0.0F : static_cast<float>(share / sum);
  narrow_row(row, task.dim_v, factor, task.dtype, RowsFrom(task.out, task.dtype, query)(0));
  if (task.lse != nullptr)
    task.lse[query] = empty ? -kInfinity : static_cast<float>(top + ::log(sum));
}

template <ForwardEngine Engine>
inline void store_panel(const ForwardItem& item, std::int64_t p,
                        const ForwardBuffers<Engine>& buffers) {
  constexpr int kPanel = Engine::kPanel;
  const Panel<kPanel>& panel = buffers.panel[p];
  const std::int64_t dim_v = panel.head[0]->dim_v;
  transpose(buffers.sums + p * kPanel * buffers.padded_v, kPanel, dim_v, kPanel, buffers.rows_out,
            buffers.padded_v);
  for (std::int64_t lane = 0; lane < panel.count; ++lane) {
    const float* row = buffers.rows_out + lane * buffers.padded_v;
    const float base = buffers.base[p * kPanel + lane];
    const float row_sum = buffers.row_sum[p * kPanel + lane];
    if (item.partial == nullptr) {
      finish_row(*panel.head[lane], panel.query[lane], row, base, row_sum);
      continue;
    }
    float* partial = item.partial + (p * kPanel + lane) * (dim_v + 2);
    for (std::int64_t c = 0; c < dim_v; ++c) partial[c] = row[c];
    partial[dim_v] = base;
    partial[dim_v + 1] = row_sum;
  }
}

/// False, with nothing stored, if the engine cannot take what the data holds.
template <ForwardEngine Engine, class Exp>
inline bool forward_item(const ForwardItem& item, void* memory) {
  constexpr int kPanel = Engine::kPanel;
  [[maybe_unused]] const typename Engine::Setup setup;
  const HeadTask& task = *item.heads;
  const std::int64_t rows = item.row_end - item.row_begin;
  Scratch scratch(memory);
  const ForwardBuffers<Engine> buffers(scratch, task.dim, task.dim_v, rows);
  bool finite = true;
  Span seen{task.len_k, 0};
  for (std::int64_t p = 0; p < buffers.panels; ++p) {
    const std::int64_t row = p * kPanel;
    Panel<kPanel>& panel = buffers.panel[p];
    panel = Panel<kPanel>(item.heads, item.row_begin + row, smaller(kPanel, rows - row));
    const Span span = visible_keys(task, panel.first, panel.last);
    seen = {smaller(seen.begin, span.begin), larger(seen.end, span.end)};
    finite = Engine::pack_query_panel(
                 [&](std::int64_t lane) { return panel.row_of(&HeadTask::q, lane); }, task.dtype,
                 panel.count, task.dim, buffers.queries + p * buffers.panel_bytes) &&
             finite;
  }
  fill(buffers.sums, buffers.panels * kPanel * buffers.padded_v, 0.0F);
  fill(buffers.base, buffers.panels * kPanel, -kInfinity);
  fill(buffers.row_sum, buffers.panels * kPanel, 0.0F);

  // Blocks start at multiples of their size, whatever the item's first query sees: a query's result
  // must not depend on which others are in its item.
  const std::int64_t begin = larger(item.key_begin, seen.begin) / Engine::kKeyBlock;
  const std::int64_t end = smaller(item.key_end, seen.end);
  for (std::int64_t key = begin * Engine::kKeyBlock; key < end; key += Engine::kKeyBlock) {
    const std::int64_t keys = smaller(Engine::kKeyBlock, end - key);
    const std::int64_t padded = round_up(keys, Engine::kKeyStep);
    finite = Engine::pack_key_rows(RowsFrom(task.k, task.dtype, key), task.dtype, keys, padded,
                                   task.dim, buffers.keys) &&
             finite;
    finite = Engine::pack_key_columns(RowsFrom(task.v, task.dtype, key), task.dtype, keys, padded,
                                      task.dim_v, buffers.values) &&
             finite;
    if (!finite && !Engine::kTakesAnything) return false;
    forward_block<Engine, Exp>(task, {key, keys, padded}, buffers);
  }
  for (std::int64_t p = 0; p < buffers.panels; ++p) store_panel(item, p, buffers);
  return true;
}

inline void merge(const ForwardItem& item, std::int64_t splits, std::int64_t stride) {
  const HeadTask& task = *item.heads;
  const std::int64_t width = task.dim_v + 2;
  for (std::int64_t row = item.row_begin; row < item.row_end; ++row) {
    float* first = item.partial + (row - item.row_begin) * width;
    const auto part = [&](std::int64_t split) { return first + split * stride; };
    float base = -kInfinity;
    for (std::int64_t s = 0; s < splits; ++s) {
      const float other = part(s)[task.dim_v];
      base = other > base ? other : base;
    }
    float row_sum = 0;
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* sums = part(s);
      // Split 0 is where the sum is made, so it is always taken; a split that saw nothing is zero.
      const float factor = sums[task.dim_v] == -kInfinity
                               ? 0.0F
                               : static_cast<float>(::exp(sums[task.dim_v] - base));
      row_sum += sums[task.dim_v + 1] * factor;
      for (std::int64_t c = 0; c < task.dim_v; ++c)
        first[c] = s == 0 ? sums[c] * factor : first[c] + sums[c] * factor;
    }
    const HeadTask& head = item.heads[row / task.len_q];
    finish_row(head, row % task.len_q, first, base, row_sum);
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
