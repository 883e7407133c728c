#pragma once
// The five products of the backward pass, of some panels of queries and a chunk of keys that are
// packed: where the engine can, those of one block overlap with the exponentials of another.

#include "cpu/generic/recompute.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Panels of queries that are taken together, so that dk and dv are read and written once for them.
constexpr std::int64_t kQueryPanels = 4;
/// Keys that stay packed while all queries pass by.
constexpr std::int64_t kChunk = kAloneKeys;

/// One block of keys and its sums.
template <BackwardEngine Engine>
struct KeyGradients {
  KeyGradients() = default;
  KeyGradients(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : packed(scratch, dim, dim_v),
        key_columns(scratch.bytes(Engine::key_columns_bytes(Engine::kGradientKeys, dim))),
        dk(scratch.take<float>(Engine::kGradientKeys * round_up(dim, Engine::kColumnStep))),
        dv(scratch.take<float>(Engine::kGradientKeys * round_up(dim_v, Engine::kColumnStep))) {}

  KeyBuffers<Engine> packed;
  void* key_columns;
  float* dk;  // [kKeyBlock][padded dim]
  float* dv;  // [kKeyBlock][padded dim_v]
};

template <BackwardEngine Engine>
struct BackwardBuffers {
  static constexpr int kPanel = Engine::kPanel;
  static constexpr std::int64_t kKeys = Engine::kGradientKeys;
  static constexpr std::int64_t kBlocks = kChunk / kKeys;

  BackwardBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : padded(round_up(dim, Engine::kColumnStep)),
        padded_v(round_up(dim_v, Engine::kColumnStep)),
        dq(scratch.take<float>(kQueryPanels * kPanel * padded)) {
    for (auto& one : slot) {
      one.scores = ScoreBuffers<Engine>(scratch);
      one.gradients = scratch.bytes(Engine::kOneBlock ? 0 : Engine::right_block_bytes(kKeys));
    }
    for (auto& one : rows_of) {
      one.queries = scratch.bytes(Engine::query_rows_bytes(kQueryPanels, dim));
      one.douts = scratch.bytes(Engine::query_rows_bytes(kQueryPanels, dim_v));
    }
    for (auto& one : left) {
      one.probabilities = scratch.bytes(Engine::left_block_bytes(kKeys, kQueryPanels));
      one.gradients = scratch.bytes(Engine::left_block_bytes(kKeys, kQueryPanels));
    }
    for (auto& one : panel) one = PanelBuffers<Engine>(scratch, dim, dim_v);
    for (auto& one : block) one = KeyGradients<Engine>(scratch, dim, dim_v);
  }

  std::int64_t padded;
  std::int64_t padded_v;
  float* dq;  // [panel][padded][kPanel]
  PanelBuffers<Engine> panel[kQueryPanels];
  KeyGradients<Engine> block[kBlocks];

  // Where products overlap with exponentials there are two of what passes from the one to the
  // other.
  static constexpr int kSlots = Engine::Background::kOverlaps ? 2 : 1;

  /// One panel against one block of keys.
  struct Slot {
    ScoreBuffers<Engine> scores;
    void* gradients;  // right block, for dq; not used by an engine with one block for both
  };
  Slot slot[kSlots];

  /// What dk and dv are summed over, of all panels.
  struct QueryRows {
    void* queries;
    void* douts;
  };
  QueryRows rows_of[kSlots];

  /// All panels against one block of keys.
  struct LeftBlocks {
    void* probabilities;
    void* gradients;
  };
  LeftBlocks left[kSlots];
};

/// What goes on from one block of queries to the next: sums of dk and dv that are still in work,
/// and which of the slots are next.
template <BackwardEngine Engine>
struct Pipeline {
  typename Engine::Background background;
  int rows = 0;
  int left = 0;
  bool summed[BackwardBuffers<Engine>::kBlocks] = {};  // whether dk and dv of a block are begun

  static constexpr int after(int slot) { return (slot + 1) % BackwardBuffers<Engine>::kSlots; }
};

/// The panels that are loaded against the chunk of keys that is loaded.
template <BackwardEngine Engine, class Exp>
class BackwardStep {
 public:
  BackwardStep(const HeadTask& task, bool statistics, std::int64_t panels, std::int64_t key,
               std::int64_t keys, const BackwardBuffers<Engine>& buffers,
               Pipeline<Engine>& pipeline)
      : task_(task),
        statistics_(statistics),
        panels_(panels),
        first_key_(key),
        keys_(keys),
        blocks_((keys + kKeys - 1) / kKeys),
        buffers_(buffers),
        pipeline_(pipeline) {}

  /// All of dq is there afterwards; dk and dv when the pipeline is finished.
  void run() {
    for (std::int64_t p = 0; p < panels_; ++p) {
      const std::int64_t size = Engine::kPanel * buffers_.padded;
      if (begins(blocks_, p)) fill(buffers_.dq + p * size, size, 0.0F);  // it sees no block
    }
    if constexpr (Engine::Background::kOverlaps)
      overlapped();
    else
      one_by_one();
  }

 private:
  static constexpr std::int64_t kKeys = Engine::kGradientKeys;
  using Background = typename Engine::Background;

  std::int64_t key(std::int64_t b) const { return first_key_ + b * kKeys; }
  std::int64_t count(std::int64_t b) const { return smaller(kKeys, keys_ - b * kKeys); }
  std::int64_t rows(std::int64_t b) const { return round_up(count(b), Engine::kKeyStep); }
  Coverage covered(std::int64_t b, std::int64_t p) const {
    const Panel<Engine::kPanel>& panel = *buffers_.panel[p].panel;
    return coverage(task_, panel.first, panel.last, key(b), count(b));
  }
  bool sees(std::int64_t b, std::int64_t p) const { return covered(b, p) != Coverage::none; }
  /// Whether no block before this one was seen.
  bool begins(std::int64_t b, std::int64_t p) const {
    while (b > 0 && !sees(b - 1, p)) --b;
    return b == 0;
  }

  template <class Products>
  void scores(Products& products, std::int64_t b, std::int64_t p, int slot) const {
    multiply_scores(products, task_, rows(b), buffers_.block[b].packed, buffers_.panel[p],
                    buffers_.slot[slot].scores);
  }

  template <class Products>
  void add_dq(Products& products, std::int64_t b, std::int64_t p, int slot) const {
    const void* right = buffers_.slot[slot].gradients;
    if constexpr (Engine::kOneBlock)
      right = Engine::left_panel(buffers_.left[0].gradients, rows(b), p);
    products.add_panel(task_.dim, rows(b), rows(b), buffers_.block[b].key_columns, right,
                       buffers_.dq + p * Engine::kPanel * buffers_.padded, begins(b, p));
  }

  template <class Products>
  void add_dkv(Products& products, std::int64_t b, int slot) const {
    const auto& left = buffers_.left[slot];
    const auto& right = buffers_.rows_of[pipeline_.rows];
    const bool first = !pipeline_.summed[b];
    pipeline_.summed[b] = true;
    add_rows(products, rows(b), task_.dim_v, left.probabilities, right.douts, buffers_.block[b].dv,
             buffers_.padded_v, first);
    add_rows(products, rows(b), task_.dim, left.gradients, right.queries, buffers_.block[b].dk,
             buffers_.padded, first);
  }

  /// A background begins sums itself, other engines add to zeros.
  template <class Products>
  void add_rows(Products& products, std::int64_t keys, std::int64_t columns, const void* left,
                const void* right, float* sums, std::int64_t stride, bool first) const {
    if constexpr (Background::kOverlaps) {
      products.add_rows(keys, panels_, columns, left, right, sums, stride, first);
    } else {
      if (first) fill(sums, keys * stride, 0.0F);
      products.add_rows(keys, panels_, columns, left, right, sums, stride);
    }
  }

  void one_by_one() const {
    Engine engine;
    for (std::int64_t b = 0; b < blocks_; ++b) {
      bool any = false;
      for (std::int64_t p = 0; p < panels_; ++p) any = any || sees(b, p);
      if (!any) continue;
      hide_panels(b, 0);
      for (std::int64_t p = 0; p < panels_; ++p) {
        if (!sees(b, p)) continue;
        scores(engine, b, p, 0);
        differentiate_panel(b, p, 0, 0);
        add_dq(engine, b, p, 0);
      }
      add_dkv(engine, b, 0);
    }
  }

  /// While one panel is differentiated, the scores of the next and the sums of those before are
  /// multiplied.
  void overlapped() const {
    struct Place {
      std::int64_t b, p;
    };
    const auto seeing = [&](Place at) {
      for (; at.b < blocks_; ++at.b, at.p = 0) {
        for (; at.p < panels_; ++at.p) {
          if (sees(at.b, at.p)) return at;
        }
      }
      return at;
    };
    Background& background = pipeline_.background;
    int& left = pipeline_.left;
    Place at = seeing({0, 0});
    if (at.b == blocks_) return background.finish();  // its rows are packed over after next
    scores(background, at.b, at.p, 0);
    background.finish_urgent();
    hide_panels(at.b, left);
    for (int slot = 0; at.b < blocks_; slot = 1 - slot) {
      const Place next = seeing({at.b, at.p + 1});
      if (next.b < blocks_) scores(background, next.b, next.p, 1 - slot);
      differentiate_panel(at.b, at.p, slot, left);
      if (next.b == at.b) {
        background.finish_urgent();
        add_dq(background, at.b, at.p, slot);
      } else {
        background.finish();  // the block before this one: its left blocks are next
        add_dq(background, at.b, at.p, slot);
        add_dkv(background, at.b, left);
        left = Pipeline<Engine>::after(left);
        if (next.b < blocks_) hide_panels(next.b, left);
      }
      at = next;
    }
    background.finish_urgent();
  }

  /// Nothing, where a panel sees none of a block that others see.
  void hide_panels(std::int64_t b, int left) const {
    Vec nothing[Engine::kBlockRows][Engine::kBlockVectors];
    for (auto& row : nothing) {
      for (auto& x : row) x = splat(0.0F);
    }
    for (std::int64_t p = 0; p < panels_; ++p) {
      if (sees(b, p)) continue;
      for (std::int64_t j = 0; j < rows(b); j += Engine::kBlockRows) {
        for (int v = 0; v < Engine::kPanel / kWidth; v += Engine::kBlockVectors) {
          Engine::put_left(buffers_.left[left].probabilities, rows(b), p, j, v, nothing);
          Engine::put_left(buffers_.left[left].gradients, rows(b), p, j, v, nothing);
        }
      }
    }
  }

  /// Scores to probabilities and gradients, into the engine's blocks.
  void differentiate_panel(std::int64_t b, std::int64_t p, int slot, int left) const {
    const PanelBuffers<Engine>& panel = buffers_.panel[p];
    const ScoreBuffers<Engine>& scores = buffers_.slot[slot].scores;
    const float scale =
        finish_scores<Engine>({*panel.panel, key(b), count(b)}, covered(b, p), rows(b), scores);
    if (!statistics_) {
      if (take_at_once<Engine, Exp>(rows(b), scale, panel, scores))
        return differentiate_panel<TakenExp>(scale, b, p, slot, left);
      return differentiate_panel<Exp>(scale, b, p, slot, left);
    }
    RowSums<Engine::kPanel> sums;
    take_probabilities<Engine, Exp>(rows(b), scale, panel, scores, sums);
    sums.store_statistics(task_, panel.panel->first, panel.panel->count);
    panel.load_statistics(task_);
    differentiate_panel<TakenExp>(scale, b, p, slot, left);
  }

  /// To ask for softcap and dropout at every vector would cut the loop into pieces.
  template <class AnyExp>
  void differentiate_panel(float scale, std::int64_t b, std::int64_t p, int slot, int left) const {
    if (task_.softcap == 0 && !task_.has_dropout)
      differentiate_rows<AnyExp, true>(scale, b, p, slot, left);
    else
      differentiate_rows<AnyExp, false>(scale, b, p, slot, left);
  }

  // A function of its own: beside assembly that takes every register, GCC 12 loads the constants of
  // the loop anew in every turn.
  template <class AnyExp, bool plain>
  STROBE_NOT_INLINE void differentiate_rows(float scale, std::int64_t b, std::int64_t p, int slot,
                                            int left) const {
    constexpr int kRows = Engine::kBlockRows;
    constexpr int kVectors = Engine::kBlockVectors;
    constexpr int kAllVectors = Engine::kPanel / kWidth;
    const PanelBuffers<Engine>& panel = buffers_.panel[p];
    const ScoreBuffers<Engine>& scores = buffers_.slot[slot].scores;
    const auto& blocks = buffers_.left[left];
    void* right = buffers_.slot[slot].gradients;
    Background& background = pipeline_.background;
    const std::int64_t padded = rows(b);
    background.pace(padded / kRows * (kAllVectors / kVectors), panels_ - p);
    for (int first = 0; first < kAllVectors; first += kVectors) {
      AnyExp exp[kVectors];
      for (int v = 0; v < kVectors; ++v)
        exp[v] = AnyExp(scale, load(panel.lse + (first + v) * kWidth));
      for (std::int64_t j = 0; j < padded; j += kRows) {
        Vec probability[kRows][kVectors];
        Vec gradient[kRows][kVectors];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            const std::int64_t at = (j + r) * Engine::kPanel + (first + v) * kWidth;
            const Differentiated d = differentiate(at, first + v, exp[v], panel, scores);
            const bool dropout = !plain && task_.has_dropout;
            const bool softcap = !plain && task_.softcap != 0;
            probability[r][v] = dropout ? d.probability * load(scores.extra + at) : d.probability;
            gradient[r][v] = softcap ? d.gradient * load(scores.slope + at) : d.gradient;
          }
        }
        Engine::put_left(blocks.probabilities, padded, p, j, first, probability);
        Engine::put_both(blocks.gradients, right, padded, p, j, first, gradient);
        background.advance();
      }
    }
  }

  const HeadTask& task_;
  bool statistics_;  // not there yet: all keys are in this one block
  std::int64_t panels_;
  std::int64_t first_key_;
  std::int64_t keys_;
  std::int64_t blocks_;
  const BackwardBuffers<Engine>& buffers_;
  Pipeline<Engine>& pipeline_;
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
