#pragma once
// What the backward pass computes once more: scores, the gradients of probabilities beside them,
// and from both the probabilities and the statistics of rows.

#include <math.h>

#include "cpu/generic/engine.h"
#include "cpu/generic/logits.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

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

  /// False if a number is not finite, or beyond what the exponential reaches.
  template <class Exp>
  bool load(const HeadTask& task, std::int64_t query, std::int64_t count) const {
    *panel = Panel<kPanel>(&task, query, count);
    for (std::int64_t i = 0; i < kPanel; ++i) {
      const float given = i < count ? task.lse[query + i] : -kInfinity;
      lse[i] = given == -kInfinity ? kInfinity : given;
    }
    const bool finite = Engine::pack_query_panel(RowsFrom(task.q, task.dtype, query), task.dtype,
                                                 count, task.dim, queries);
    return Engine::pack_query_panel(RowsFrom(task.dout, task.dtype, query), task.dtype, count,
                                    task.dim_v, douts) &&
           finite && reaches<Exp, kPanel>(lse);
  }
  /// What row_statistics has found, or the item itself.
  void load_statistics(const HeadTask& task) const {
    const std::int64_t query = panel->first;
    for (std::int64_t i = 0; i < kPanel; ++i) {
      correction[i] = i < panel->count ? task.correction[query + i] : 0.0F;
      delta[i] = i < panel->count ? task.delta[query + i] : 0.0F;
    }
  }
};

/// One block of keys as the scores take them.
template <BackwardEngine Engine>
struct KeyBuffers {
  KeyBuffers() = default;
  KeyBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : keys(scratch.bytes(Engine::key_rows_bytes(Engine::kGradientKeys, dim))),
        values(scratch.bytes(Engine::key_rows_bytes(Engine::kGradientKeys, dim_v))) {}

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
  ScoreBuffers() = default;
  explicit ScoreBuffers(Scratch& scratch)
      : logits(scratch.take<float>(kSize)),
        gradients(scratch.take<float>(kSize)),
        slope(scratch.take<float>(kSize)),
        extra(scratch.take<float>(kSize)) {}

  static constexpr std::int64_t kSize = std::int64_t{Engine::kGradientKeys} * Engine::kPanel;
  float* logits;     // up to the scale that `finish_scores` returns
  float* gradients;  // of the probabilities, with dropout's zeros and scale
  float* slope;      // derivative of the softcap
  float* extra;      // bias or dropout
};

/// Raw scores and the gradients of the probabilities.
template <class Products, BackwardEngine Engine>
inline void multiply_scores(Products& products, const HeadTask& task, std::int64_t rows,
                            const KeyBuffers<Engine>& keys, const PanelBuffers<Engine>& panel,
                            const ScoreBuffers<Engine>& scores) {
  products.scores(rows, task.dim, keys.keys, panel.queries, scores.logits);
  products.scores(rows, task.dim_v, keys.values, panel.douts, scores.gradients);
}

/// From there to logits; dropout reaches the gradients. Returns the scale left to apply to the
/// logits.
template <BackwardEngine Engine>
inline float finish_scores(const Block<Engine::kPanel>& block, Coverage covered, std::int64_t rows,
                           const ScoreBuffers<Engine>& scores) {
  const float scale =
      finish_logits(block, covered, rows, scores.logits, scores.slope, scores.extra);
  if (block.task().has_dropout) {
    draw_dropout(block, rows, scores.extra);
    for (std::int64_t i = 0; i < rows * Engine::kPanel; i += kWidth)
      store(scores.gradients + i, load(scores.gradients + i) * load(scores.extra + i));
  }
  return scale;
}

/// From what `finish_scores` left in one vector: the probability, before dropout, and the gradient
/// of the logit, before it goes back through the softcap.
struct Differentiated {
  Vec probability;
  Vec gradient;
};

template <BackwardEngine Engine, class Exp>
STROBE_INLINE Differentiated differentiate(std::int64_t at, int v, const Exp& exp,
                                           const PanelBuffers<Engine>& panel,
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
  return {p, dx};
}

/// Probabilities that were taken before.
struct TakenExp {
  TakenExp() = default;
  TakenExp(float, Vec) {}
  STROBE_INLINE Vec operator()(Vec p) const { return p; }
};

/// The statistics of a row with these sums of p and of p * dp.
inline void store_row_statistics(const HeadTask& task, std::int64_t query, double p, float dot) {
  const float lse = task.lse[query];
  // One, but for the rounding of the LSE.
  const double sum = p + (task.has_sink ? ::exp(double{task.sink} - lse) : 0.0);
  const float correction = lse == -kInfinity ? 0.0F : static_cast<float>((1.0 - sum) / sum);
  task.correction[query] = correction;
  task.delta[query] = dot + dot * correction;
}

/// Sums over a panel's rows, lane by lane: of p, with what its roundings lost, and of p * dp. The
/// first is there to tell the rounding of an LSE, which one of its own would hide.
template <int lanes>
struct RowSums {
  float p[lanes] = {};
  float p_lost[lanes] = {};
  float dot[lanes] = {};

  /// To a vector of lanes.
  STROBE_INLINE void add(int first_lane, Vec p_part, Vec dot_part) {
    const Vec before = load(p + first_lane);
    const Vec sum = before + p_part;
    const Vec added = sum - before;
    const Vec lost = (before - (sum - added)) + (p_part - added);
    store(p + first_lane, sum);
    store(p_lost + first_lane, load(p_lost + first_lane) + lost);
    store(dot + first_lane, load(dot + first_lane) + dot_part);
  }

  /// From the sums to the row statistics of the task.
  void store_statistics(const HeadTask& task, std::int64_t query, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i)
      store_row_statistics(task, query + i, double{p[i]} + p_lost[i], dot[i]);
  }

  /// To [count][kStatisticsSums].
  void store_sums(float* to, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i, to += kStatisticsSums) {
      to[0] = p[i];
      to[1] = p_lost[i];
      to[2] = dot[i];
    }
  }
};

/// Turns a block's logits into probabilities where they lie. False, with nothing done, unless the
/// engine takes them all at once, and these.
template <BackwardEngine Engine, class Exp>
inline bool take_at_once(std::int64_t rows, float scale, const PanelBuffers<Engine>& panel,
                         const ScoreBuffers<Engine>& scores) {
  if constexpr (requires(float* x) { Engine::take_exponentials(Exp(), rows, x, scale, x, x, x); }) {
    float row_sum[Engine::kPanel] = {};  // asked of a forward pass only
    return Engine::take_exponentials(Exp(), rows, scores.logits, scale, panel.lse, row_sum,
                                     scores.logits);
  }
  return false;
}

/// How many rows are added up at once: few where sums must lose little.
template <class Exp>
constexpr std::int64_t kSummedAtOnce = std::int64_t{1} << 40;
template <>
constexpr std::int64_t kSummedAtOnce<PreciseExp> = 16;

/// The same in any case, and adds to the sums.
template <BackwardEngine Engine, class Exp, std::int64_t at_once = kSummedAtOnce<Exp>>
inline void take_probabilities(std::int64_t rows, float scale, const PanelBuffers<Engine>& panel,
                               const ScoreBuffers<Engine>& scores, RowSums<Engine::kPanel>& sums) {
  if (take_at_once<Engine, Exp>(rows, scale, panel, scores))
    return take_probabilities<Engine, TakenExp, at_once>(rows, scale, panel, scores, sums);
  constexpr int kLanes = Engine::kPanel;
  for (int v = 0; v < kLanes / kWidth; ++v) {
    const Exp exp(scale, load(panel.lse + v * kWidth));
    for (std::int64_t part = 0; part < rows; part += at_once) {
      Vec sum = splat(0.0F);
      Vec dot = splat(0.0F);
      for (std::int64_t j = part; j < smaller(part + at_once, rows); ++j) {
        const std::int64_t at = j * kLanes + v * kWidth;
        const Vec p = exp(load(scores.logits + at));
        store(scores.logits + at, p);
        sum = sum + p;
        const Vec more = fma(p, load(scores.gradients + at), dot);
        // Hidden: not even 0 * infinity.
        dot = Engine::kTakesAnything ? select(equal(p, splat(0.0F)), dot, more) : more;
      }
      sums.add(v * kWidth, sum, dot);
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
