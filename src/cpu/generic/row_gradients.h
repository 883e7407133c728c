#pragma once
// The parts of the backward pass that go over queries alone: row statistics and the gradient of the
// bias.

#include "cpu/generic/recompute.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <BackwardEngine Engine>
struct RowBuffers {
  RowBuffers(Scratch& scratch, std::int64_t dim, std::int64_t dim_v)
      : panel(scratch, dim, dim_v), keys(scratch, dim, dim_v), scores(scratch) {}

  PanelBuffers<Engine> panel;
  KeyBuffers<Engine> keys;
  ScoreBuffers<Engine> scores;
};

/// As the main pass does it, at once.
template <BackwardEngine Engine>
inline float recompute(const Block<Engine::kPanel>& block, Coverage covered,
                       const RowBuffers<Engine>& buffers) {
  const std::int64_t rows = round_up(block.keys, Engine::kKeyStep);
  Engine engine;
  multiply_scores(engine, block.task(), rows, buffers.keys, buffers.panel, buffers.scores);
  return finish_scores(block, covered, rows, buffers.scores);
}

/// Rows that see more keys than this have their statistics from the forward pass: delta = dout .
/// out and probabilities e^(x - lse) as they are. The LSE is rounded to float32, which puts half of
/// its last place into every probability of the row, and `out` is rounded to the dtype. On short
/// rows both are larger than what the unfused computation makes, so there the row sums are taken
/// from the recomputed probabilities themselves.
constexpr std::int64_t kShortRow = 512;

/// In fp32 the rounding of the LSE shows as well where it is large, for its last place is 1e-6
/// then, and where there are few queries. Rows of much larger logits have one key, and gradients
/// that cancel to the last bit or not at all: those must in every dtype.
constexpr float kLargeLse = 16.0F;

inline bool wants_exact(const HeadTask& task, std::int64_t query, std::int64_t count, Span span) {
  if (span.end - span.begin <= kShortRow) return true;
  const bool fp32 = task.dtype == DType::fp32;
  const float most = fp32 ? kLargeLse : ShortExp::kReach;
  bool large = false;
  for (std::int64_t i = query; i < query + count; ++i) {
    const float lse = task.lse[i];
    large = large || lse > most || (lse < -most && lse != -kInfinity);
  }
  return large || (fp32 && task.len_q <= kFewQueries);
}

inline void quick_statistics(const HeadTask& task, std::int64_t query) {
  with_element(task.dtype, [&](auto element) {
    using Element = decltype(element);
    using Type = typename Element::Type;
    const auto* out = static_cast<const Type*>(RowsFrom(task.out, task.dtype, query)(0));
    const auto* dout = static_cast<const Type*>(RowsFrom(task.dout, task.dtype, query)(0));
    Vec sum = splat(0.0F);
    std::int64_t c = 0;
    for (; c + kWidth <= task.dim_v; c += kWidth)
      sum = fma(Element::load(out + c), Element::load(dout + c), sum);
    if (c < task.dim_v)
      sum = fma(load_tail<Element>(out + c, task.dim_v - c),
                load_tail<Element>(dout + c, task.dim_v - c), sum);
    float lanes[kWidth];
    store(lanes, sum);
    float delta = 0;
    for (const float lane : lanes) delta += lane;
    task.delta[query] = task.lse[query] == -kInfinity ? 0.0F : delta;
    task.correction[query] = 0.0F;
  });
}

/// Adds what the rows of a panel see of these keys, with the engine of the pass after: what cancels
/// there must cancel to the last bit. False if it cannot take them.
template <BackwardEngine Engine, class Exp>
inline bool add_statistics(const HeadTask& task, std::int64_t query, std::int64_t count, Span span,
                           const RowBuffers<Engine>& buffers, RowSums<Engine::kPanel>& sums) {
  bool finite = buffers.panel.template load<Exp>(task, query, count);
  for (std::int64_t key = span.begin; key < span.end; key += Engine::kGradientKeys) {
    const std::int64_t keys = smaller(Engine::kGradientKeys, span.end - key);
    const Panel<Engine::kPanel>& panel = *buffers.panel.panel;
    const Coverage covered = coverage(task, panel.first, panel.last, key, keys);
    if (covered == Coverage::none) continue;
    finite = buffers.keys.load(task, key, keys) && finite;
    if (!finite && !Engine::kTakesAnything) return false;
    const float scale = recompute({panel, key, keys}, covered, buffers);
    take_probabilities<Engine, Exp>(round_up(keys, Engine::kKeyStep), scale, buffers.panel,
                                    buffers.scores, sums);
  }
  return true;
}

template <BackwardEngine Engine, class Exp>
inline bool row_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end,
                           void* memory) {
  [[maybe_unused]] const typename Engine::Setup setup;
  Scratch scratch(memory);
  const RowBuffers<Engine> buffers(scratch, task.dim, task.dim_v);
  for (std::int64_t query = begin; query < end; query += Engine::kPanel) {
    const std::int64_t count = smaller(Engine::kPanel, end - query);
    const Span span = visible_keys(task, query, query + count - 1);
    if (wants_exact(task, query, count, span)) {
      RowSums<Engine::kPanel> sums;
      if (!add_statistics<Engine, Exp>(task, query, count, span, buffers, sums)) return false;
      sums.store_statistics(task, query, count);
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) quick_statistics(task, query + i);
  }
  return true;
}

template <BackwardEngine Engine, class Exp>
inline bool sum_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end, float* to,
                           void* memory) {
  [[maybe_unused]] const typename Engine::Setup setup;
  Scratch scratch(memory);
  const RowBuffers<Engine> buffers(scratch, task.dim, task.dim_v);
  for (std::int64_t query = 0; query < task.len_q; query += Engine::kPanel) {
    const std::int64_t count = smaller(Engine::kPanel, task.len_q - query);
    const Span seen = visible_keys(task, query, query + count - 1);
    const Span span = {larger(seen.begin, begin), smaller(seen.end, end)};
    RowSums<Engine::kPanel> sums;
    if (!add_statistics<Engine, Exp>(task, query, count, span, buffers, sums)) return false;
    sums.store_sums(to + query * kStatisticsSums, count);
  }
  return true;
}

inline void merge_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end,
                             const float* sums, std::int64_t splits, std::int64_t stride) {
  for (std::int64_t query = begin; query < end; ++query) {
    double p = 0;
    float dot = 0;
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* part = sums + s * stride + (query - begin) * kStatisticsSums;
      p += double{part[0]} + part[1];
      dot += part[2];
    }
    store_row_statistics(task, query, p, dot);
  }
}

/// Returns the first query that is not done: q_end, unless the engine cannot take what comes.
template <BackwardEngine Engine, class Exp>
inline std::int64_t grad_bias_add(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                                  std::int64_t k_begin, std::int64_t k_end, float* sums,
                                  void* memory) {
  static_assert(kBiasKeys <= Engine::kGradientKeys);
  constexpr int kLanes = Engine::kPanel;
  [[maybe_unused]] const typename Engine::Setup setup;
  Scratch scratch(memory);
  const RowBuffers<Engine> buffers(scratch, task.dim, task.dim_v);
  const std::int64_t keys = k_end - k_begin;
  bool finite = buffers.keys.load(task, k_begin, keys);
  for (std::int64_t query = q_begin; query < q_end; query += kLanes) {
    const std::int64_t count = smaller(kLanes, q_end - query);
    finite = buffers.panel.template load<Exp>(task, query, count) && finite;
    buffers.panel.load_statistics(task);
    if (!finite && !Engine::kTakesAnything) return query;
    const Panel<kLanes>& panel = *buffers.panel.panel;
    const Coverage covered = coverage(task, panel.first, panel.last, k_begin, keys);
    if (covered == Coverage::none) continue;
    const float scale = recompute({panel, k_begin, keys}, covered, buffers);
    for (int v = 0; v < kLanes / kWidth; ++v) {
      const Exp exp(scale, load(buffers.panel.lse + v * kWidth));
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t at = j * kLanes + v * kWidth;
        const Differentiated d = differentiate(at, v, exp, buffers.panel, buffers.scores);
        store(buffers.scores.gradients + at, d.gradient);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      float* row = sums + (task.bias_per_query ? (query - q_begin + i) * kBiasKeys : 0);
      for (std::int64_t j = 0; j < keys; ++j) row[j] += buffers.scores.gradients[j * kLanes + i];
    }
  }
  return q_end;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
