#pragma once
// Flash attention, forward: queries in the lanes, keys in blocks, softmax on the way.

#include "cpu/generic/engine.h"
#include "cpu/generic/logits.h"
#include "cpu/generic/online_softmax.h"
#include "cpu/generic/row_ends.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// A block of keys and values as the engine multiplies them.
template <ForwardEngine Engine>
struct KeyPack {
  KeyPack(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : keys(scratch.take<char>(Engine::key_rows_bytes(Engine::kKeyBlock, dim))),
        values(scratch.take<char>(Engine::key_columns_bytes(Engine::kKeyBlock, dim_v))),
        finite(scratch.take<bool>(1)) {}

  char* keys;    // packed rows
  char* values;  // packed columns
  bool* finite;
};

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
        started(scratch.take<bool>(panels)),
        in_reach(scratch.take<bool>(1)),
        base(scratch.take<float>(panels * kPanel)),
        row_sum(scratch.take<float>(panels * kPanel)),
        pack(scratch, dim, dim_v),
        extra(scratch.take<float>(kKeyBlock * kPanel)) {
    for (auto& one : slot) {
      one.scores = scratch.take<float>(kKeyBlock * kPanel);
      // In place, a panel's block takes half as much of the nearest cache.
      one.probabilities =
          Engine::kInPlace ? one.scores : scratch.bytes(Engine::right_block_bytes(kKeyBlock));
    }
  }

  std::int64_t panels;
  std::int64_t padded_v;  // up to whole tiles
  std::int64_t panel_bytes;
  Panel<kPanel>* panel;
  char* queries;         // packed panels
  float* sums;           // [panel][padded_v][kPanel], the output before division
  bool* started;         // [panel], whether there is anything in these:
  bool* in_reach;        // whether Exp reaches every base so far
  float* base;           // [panel][kPanel], what the exponents are relative to, see advance_base
  float* row_sum;        // [panel][kPanel]
  KeyPack<Engine> pack;  // of the item's own
  float* extra;          // [kKeyBlock][kPanel], bias or dropout

  /// What one panel and one block of keys make of each other; two of them where products overlap
  /// with exponentials.
  struct Slot {
    float* scores;  // [kKeyBlock][kPanel]
    void* probabilities;
  };
  Slot slot[Engine::Background::kOverlaps ? 2 : 1];

  PanelSums<kPanel> sums_of(std::int64_t p) const {
    return {padded_v, sums + p * kPanel * padded_v, base + p * kPanel, row_sum + p * kPanel,
            started[p]};
  }
};

/// A block of keys that is packed.
struct PackedKeys {
  std::int64_t key;
  std::int64_t keys;
  std::int64_t rows;  // with padding
};

/// The block at `key`, of keys that end there.
template <ForwardEngine Engine>
inline PackedKeys block_at(std::int64_t key, std::int64_t end) {
  const std::int64_t keys = smaller(Engine::kKeyBlock, end - key);
  return {key, keys, round_up(keys, Engine::kKeyStep)};
}

/// An engine that finds the largest score of every lane where it stores them.
template <class Engine>
concept FindsPeaks = requires(std::int64_t n, const void* from, float* c) {
  Engine::scores_and_peaks(n, n, from, from, c, c);
};

/// Scores of one panel to probabilities. `peaks` are the largest of them, null if not known.
template <ForwardEngine Engine, class Exp>
inline void softmax_panel(std::int64_t p, const PackedKeys& packed, int slot,
                          const ForwardBuffers<Engine>& buffers,
                          typename Engine::Background& background, const float* peaks = nullptr) {
  constexpr int kPanel = Engine::kPanel;
  const Block<kPanel> block{buffers.panel[p], packed.key, packed.keys};
  const HeadTask& task = block.task();
  const Coverage covered =
      coverage(task, block.panel.first, block.panel.last, packed.key, packed.keys);
  float* scores = buffers.slot[slot].scores;
  const float scale = finish_logits(block, covered, packed.rows, scores, nullptr, buffers.extra);
  const PanelSums<kPanel> sums = buffers.sums_of(p);
  float found[kPanel];
  const bool known =
      peaks != nullptr && are_only_scaled(task, covered) && packed.rows == packed.keys;
  if (!known) find_peaks<kPanel>(packed.rows, scores, found);
  advance_base(known ? peaks : found, scale, sums);
  *buffers.in_reach = *buffers.in_reach && reaches<Exp, kPanel>(sums.base);
  if (task.has_dropout) draw_dropout(block, packed.rows, buffers.extra);
  exponentiate<Engine, Exp>(packed.rows, scores, scale, sums.base,
                            task.has_dropout ? buffers.extra : nullptr, sums.row_sum,
                            buffers.slot[slot].probabilities, background);
}

template <ForwardEngine Engine>
inline void pack_block(const HeadTask& task, const PackedKeys& packed,
                       const KeyPack<Engine>& pack) {
  const bool finite = Engine::pack_key_rows(RowsFrom(task.k, task.dtype, packed.key), task.dtype,
                                            packed.keys, packed.rows, task.dim, pack.keys);
  *pack.finite = Engine::pack_key_columns(RowsFrom(task.v, task.dtype, packed.key), task.dtype,
                                          packed.keys, packed.rows, task.dim_v, pack.values) &&
                 finite;
}

/// Where the block at `key` lies among those that the items of a head share.
template <ForwardEngine Engine>
inline KeyPack<Engine> shared_pack(const HeadTask& task, std::int64_t key, void* packs) {
  const std::int64_t bytes = bytes_of<KeyPack<Engine>>(task.dim, task.dim_v);
  Scratch scratch(static_cast<char*>(packs) + key / Engine::kKeyBlock * bytes);
  return KeyPack<Engine>(scratch, task.dim, task.dim_v);
}

/// For all items of the head, as far as there are queries that see it.
template <ForwardEngine Engine>
inline void pack_for_all(const HeadTask& task, std::int64_t key, void* packs) {
  const Span seen = visible_keys(task, 0, task.len_q - 1);
  if (key >= seen.end || key + Engine::kKeyBlock <= seen.begin) return;
  pack_block(task, block_at<Engine>(key, seen.end), shared_pack<Engine>(task, key, packs));
}

/// The pack of a block, which all items of the head share or which is made here.
template <ForwardEngine Engine>
inline KeyPack<Engine> pack_of(const ForwardItem& item, const PackedKeys& packed,
                               const ForwardBuffers<Engine>& buffers,
                               typename Engine::Background& background) {
  if (item.packs != nullptr) return shared_pack<Engine>(*item.heads, packed.key, item.packs);
  // The last sums of the block before take its values. Besides, packing stands alone: tiles that
  // were to be multiplied meanwhile would wait for what is being stored.
  background.finish();
  pack_block(*item.heads, packed, buffers.pack);
  return buffers.pack;
}

/// An item's panels against a block of keys.
template <ForwardEngine Engine>
struct BlockOfItem {
  const HeadTask& task;
  const ForwardBuffers<Engine>& buffers;
  PackedKeys packed;
  KeyPack<Engine> pack;

  /// The first panel from `p` on that sees any of the keys.
  std::int64_t seeing(std::int64_t p) const {
    const auto sees = [&](const Panel<Engine::kPanel>& panel) {
      return coverage(task, panel.first, panel.last, packed.key, packed.keys) != Coverage::none;
    };
    while (p < buffers.panels && !sees(buffers.panel[p])) ++p;
    return p;
  }

  /// The keys up to the last that the panel sees.
  PackedKeys seen(std::int64_t p) const {
    const auto& panel = buffers.panel[p];
    const std::int64_t end = visible_keys(task, panel.first, panel.last).end;
    return block_at<Engine>(packed.key, smaller(packed.key + packed.keys, end));
  }

  const char* queries(std::int64_t p) const { return buffers.queries + p * buffers.panel_bytes; }

  /// By an engine, or in its background.
  template <class By>
  void scores(By& by, std::int64_t p, int slot) const {
    by.scores(seen(p).rows, task.dim, pack.keys, queries(p), buffers.slot[slot].scores);
  }
  template <class By>
  void add_panel(By& by, std::int64_t p, int slot) const {
    const PanelSums<Engine::kPanel> sums = buffers.sums_of(p);
    by.add_panel(task.dim_v, seen(p).rows, packed.rows, pack.values,
                 buffers.slot[slot].probabilities, sums.sums, !sums.started);
    sums.started = true;
  }
};

/// All panels against a block of keys, one after the other; through(p) is called when those before
/// p are.
template <ForwardEngine Engine, class Exp, class Through>
inline void forward_block(const BlockOfItem<Engine>& block, typename Engine::Background& background,
                          Through&& through) {
  const auto& buffers = block.buffers;
  Engine engine;
  for (std::int64_t p = block.seeing(0); p < buffers.panels; p = block.seeing(p + 1)) {
    if constexpr (FindsPeaks<Engine>) {
      float peaks[Engine::kPanel];
      fill(peaks, Engine::kPanel, -kInfinity);
      engine.scores_and_peaks(block.seen(p).rows, block.task.dim, block.pack.keys, block.queries(p),
                              buffers.slot[0].scores, peaks);
      softmax_panel<Engine, Exp>(p, block.seen(p), 0, buffers, background, peaks);
    } else {
      block.scores(engine, p, 0);
      softmax_panel<Engine, Exp>(p, block.seen(p), 0, buffers, background);
    }
    block.add_panel(engine, p, 0);
    through(p + 1);
  }
}

/// What a block has done for the one after it.
struct Begun {
  bool scores = false;     // of the first panel,
  int slot = 0;            // which are there
  std::int64_t panel = 0;  // the last of the block, whose sums may still be in the background
};

/// The same where products overlap: while one panel's exponentials are taken, the scores of the
/// next and the sums of the one before are multiplied, also from this block to the one `after` it.
/// That is null if there is none or if it is not packed yet.
template <ForwardEngine Engine, class Exp, class Through>
inline void overlap_block(const BlockOfItem<Engine>& block, const BlockOfItem<Engine>* after,
                          Begun& begun, typename Engine::Background& background,
                          Through&& through) {
  const std::int64_t panels = block.buffers.panels;
  std::int64_t p = block.seeing(0);
  if (!begun.scores && p < panels) block.scores(background, p, begun.slot);
  if (!begun.scores || p == begun.panel) background.finish();
  begun.scores = false;
  for (; p < panels; begun.slot = 1 - begun.slot) {
    const std::int64_t next = block.seeing(p + 1);
    const bool last = next == panels;
    const std::int64_t first_after = last && after != nullptr ? after->seeing(0) : panels;
    begun.scores = first_after < panels;
    if (!last) block.scores(background, next, 1 - begun.slot);
    if (begun.scores) after->scores(background, first_after, 1 - begun.slot);
    softmax_panel<Engine, Exp>(p, block.seen(p), begun.slot, block.buffers, background);
    background.finish();
    block.add_panel(background, p, begun.slot);
    through(p);
    begun.panel = p;
    p = next;
  }
}

template <ForwardEngine Engine>
inline void store_panel(const ForwardItem& item, std::int64_t p,
                        const ForwardBuffers<Engine>& buffers) {
  constexpr int kPanel = Engine::kPanel;
  const Panel<kPanel>& panel = buffers.panel[p];
  const std::int64_t dim_v = panel.head[0]->dim_v;
  const PanelSums<kPanel> sums = buffers.sums_of(p);
  if (!sums.started) {
    sums.start();
    fill(sums.sums, sums.columns * kPanel, 0.0F);
  }
  float factor[kPanel];
  if (item.partial == nullptr) {
    finish_rows(panel, sums.base, sums.row_sum, factor);
    store_turned(sums.sums, kPanel, panel.count, dim_v, factor, panel.head[0]->dtype,
                 [&](std::int64_t lane) { return panel.row_of(&HeadTask::out, lane); });
    return;
  }
  const auto partial = [&](std::int64_t lane) -> float* {
    return item.partial + (p * kPanel + lane) * (dim_v + 2);
  };
  fill(factor, kPanel, 1.0F);
  store_turned<Fp32>(sums.sums, kPanel, panel.count, dim_v, factor, partial);
  for (std::int64_t i = 0; i < panel.count; ++i) {
    partial(i)[dim_v] = sums.base[i];
    partial(i)[dim_v + 1] = sums.row_sum[i];
  }
}

/// Lays out an item's panels and packs their queries; false if one is not finite.
template <ForwardEngine Engine>
inline bool pack_queries(const ForwardItem& item, const ForwardBuffers<Engine>& buffers) {
  constexpr int kPanel = Engine::kPanel;
  const HeadTask& task = *item.heads;
  bool finite = true;
  for (std::int64_t p = 0; p < buffers.panels; ++p) {
    const std::int64_t row = item.row_begin + p * kPanel;
    Panel<kPanel>& panel = buffers.panel[p];
    panel = Panel<kPanel>(item.heads, row, smaller(kPanel, item.row_end - row));
    buffers.started[p] = false;
    finite = Engine::pack_query_panel(
                 [&](std::int64_t lane) { return panel.row_of(&HeadTask::q, lane); }, task.dtype,
                 panel.count, task.dim, buffers.queries + p * buffers.panel_bytes) &&
             finite;
  }
  return finite;
}

/// From the first key that any of an item's panels sees to the last.
template <ForwardEngine Engine>
inline Span keys_of_panels(const HeadTask& task, const ForwardBuffers<Engine>& buffers) {
  Span seen{task.len_k, 0};
  for (std::int64_t p = 0; p < buffers.panels; ++p) {
    const Span span = visible_keys(task, buffers.panel[p].first, buffers.panel[p].last);
    seen = {smaller(seen.begin, span.begin), larger(seen.end, span.end)};
  }
  return seen;
}

/// False, with nothing stored that counts, if the engine cannot take what the data holds, or the
/// exponential what comes of it.
template <ForwardEngine Engine, class Exp>
inline bool forward_item(const ForwardItem& item, void* memory) {
  [[maybe_unused]] const typename Engine::Setup setup;
  const HeadTask& task = *item.heads;
  Scratch scratch(memory);
  const ForwardBuffers<Engine> buffers(scratch, task.dim, task.dim_v,
                                       item.row_end - item.row_begin);
  if (!pack_queries(item, buffers) && !Engine::kTakesAnything) return false;
  *buffers.in_reach = true;

  typename Engine::Background background;
  std::int64_t stored = 0;  // panels; each as soon as it is through, while its sums are near
  const auto store_until = [&](std::int64_t panels) {
    for (; stored < panels; ++stored) store_panel(item, stored, buffers);
  };
  // Blocks start at multiples of their size, whatever the item's first query sees: a query's result
  // must not depend on which others are in its item.
  const Span seen = keys_of_panels(task, buffers);
  const std::int64_t begin = larger(item.key_begin, seen.begin) / Engine::kKeyBlock;
  const std::int64_t end = smaller(item.key_end, seen.end);
  const std::int64_t packed_end =
      item.packs == nullptr ? end : visible_keys(task, 0, task.len_q - 1).end;
  const auto block_of = [&](std::int64_t key) -> BlockOfItem<Engine> {
    const PackedKeys packed = block_at<Engine>(key, packed_end);
    return {task, buffers, packed, pack_of(item, packed, buffers, background)};
  };
  [[maybe_unused]] Begun begun;
  for (std::int64_t key = begin * Engine::kKeyBlock; key < end; key += Engine::kKeyBlock) {
    const BlockOfItem<Engine> block = block_of(key);
    if (!*block.pack.finite && !Engine::kTakesAnything) return false;
    const std::int64_t after = key + Engine::kKeyBlock;
    const auto through = [&](std::int64_t p) {
      if (after >= end) store_until(p);
    };
    if constexpr (!Engine::Background::kOverlaps) {
      forward_block<Engine, Exp>(block, background, through);
    } else if (item.packs == nullptr || after >= end) {
      overlap_block<Engine, Exp>(block, nullptr, begun, background, through);
    } else {
      const BlockOfItem<Engine> next = block_of(after);
      overlap_block<Engine, Exp>(block, &next, begun, background, through);
    }
  }
  background.finish();
  store_until(buffers.panels);
  return *buffers.in_reach;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
