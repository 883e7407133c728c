#include <algorithm>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "reference/dropout_row.h"
#include "reference/row_math.h"
#include "reference/standard.h"

namespace strobe::reference {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The bias of the keys that one query may see, as floats.
void load_bias(const Problem& problem, const TensorView& bias, std::int64_t query, KeyRange keys,
               float* values) {
  const auto* row = static_cast<const std::byte*>(row_data(bias, query));
  widen(row + keys.begin * static_cast<std::int64_t>(size_of(problem.dtype)), keys.size(),
        problem.dtype, values);
}

void add_alibi(const Block& block, std::int64_t query, KeyRange keys, float slope, float* scores) {
  const std::int64_t position = query + block.sequence.length_k - block.sequence.length_q;
  for (std::int64_t n = 0; n < keys.size(); ++n) {
    scores[n] -= slope * static_cast<float>(std::abs(position - keys.begin - n));
  }
}

void score_block(const StandardRun& run, const Block& block) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  const auto scale = static_cast<float>(problem.softmax_scale());
  const auto cap = static_cast<float>(problem.softcap);
  const TensorView bias_view =
      problem.bias ? bias_rows(run.tensors.bias, block.sequence, block.head) : TensorView{};
  float* scores = run.scratch(run.plan.scores_row, block.thread);
  float* bias = run.scratch(run.plan.other_row, block.thread);

  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    const std::int64_t count = keys.size();
    void* stored = run.at(run.plan.scores, sequence, block.head, query, keys.begin);
    multiply_transposed(run, block, run.floats(run.plan.q, sequence, block.head, query),
                        run.plan.k_t, keys, scores);
    multiply(scores, count, scale);
    store_rounded(problem, scores, count, stored);
    if (cap != 0) {
      for (std::int64_t n = 0; n < count; ++n) scores[n] = cap * std::tanh(scores[n] / cap);
      store_rounded(problem, scores, count, stored);
      if (problem.pass == Pass::backward) {
        narrow(scores, count, problem.dtype,
               run.at(run.plan.capped, sequence, block.head, query, keys.begin));
      }
    }
    if (problem.alibi) {
      add_alibi(block, query, keys, alibi_slope(run.tensors.alibi_slopes, sequence, block.head),
                scores);
    }
    if (problem.bias) {
      load_bias(problem, bias_view, query, keys, bias);
      for (std::int64_t n = 0; n < count; ++n) {
        scores[n] = bias[n] == kMinusInfinity ? kMinusInfinity : scores[n] + bias[n];
      }
    }
    if (problem.alibi || problem.bias) store_rounded(problem, scores, count, stored);
  }
}

struct RowSums {
  float lse = kMinusInfinity;
  float p_sink = 0;
};

// Turns one row of scores into probabilities. `bias` is null if there is none.
RowSums softmax(float* scores, const float* bias, std::int64_t count, float sink) {
  const auto is_nan = [](float value) { return std::isnan(value); };
  const float largest = std::max(maximum(scores, count), sink);
  const bool all_hidden =
      bias == nullptr ? count == 0 : std::count(bias, bias + count, kMinusInfinity) == count;
  const bool all_infinite =
      largest == kMinusInfinity && !is_nan(sink) && std::none_of(scores, scores + count, is_nan);
  if (all_hidden || all_infinite) {
    std::fill_n(scores, count, kHidden);
    return {};
  }

  for (std::int64_t n = 0; n < count; ++n) scores[n] = std::exp(scores[n] - largest);
  const float sink_part = std::exp(sink - largest);
  const float total = sum(scores, count) + sink_part;
  for (std::int64_t n = 0; n < count; ++n) scores[n] /= total;
  if (bias != nullptr) {
    for (std::int64_t n = 0; n < count; ++n) {
      if (bias[n] == kMinusInfinity) scores[n] = kHidden;
    }
  }
  return {.lse = largest + std::log(total), .p_sink = sink_part / total};
}

void softmax_block(const StandardRun& run, const Block& block, const TensorView& lse) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  const TensorView lse_row = lse.given() ? lse_rows(lse, block.sequence, block.head) : TensorView{};
  const TensorView bias_view =
      problem.bias ? bias_rows(run.tensors.bias, block.sequence, block.head) : TensorView{};
  const TensorView& sinks = run.tensors.sinks;
  const float sink = problem.sinks
                         ? load_element(sinks.data, block.head * sinks.strides[0], sinks.dtype)
                         : kMinusInfinity;
  float* scores = run.scratch(run.plan.scores_row, block.thread);
  float* bias = problem.bias ? run.scratch(run.plan.other_row, block.thread) : nullptr;

  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    void* stored = run.at(run.plan.scores, sequence, block.head, query, keys.begin);
    widen(stored, keys.size(), problem.dtype, scores);
    if (problem.bias) load_bias(problem, bias_view, query, keys, bias);
    const RowSums row = softmax(scores, bias, keys.size(), sink);
    narrow(scores, keys.size(), problem.dtype, stored);
    if (lse.given()) {
      store_element(lse_row.data, query * lse_row.strides[0], lse_row.dtype, row.lse);
    }
    if (problem.sinks && problem.pass == Pass::backward) {
      *run.floats(run.plan.sinks, sequence, block.head, 0, query) = row.p_sink;
    }
  }
}

// P with dropout in the place of P.
void drop_block(const StandardRun& run, const Block& block) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  float* p = run.scratch(run.plan.scores_row, block.thread);
  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    void* stored = run.at(run.plan.scores, sequence, block.head, query, keys.begin);
    widen(stored, keys.size(), problem.dtype, p);
    apply_dropout(problem, block, query, keys.begin, p, p, keys.size());
    narrow(p, keys.size(), problem.dtype, stored);
  }
}

}  // namespace

void store_rounded(const Problem& problem, float* values, std::int64_t count, void* stored) {
  narrow(values, count, problem.dtype, stored);
  if (problem.dtype != DType::fp32) widen(stored, count, problem.dtype, values);
}

void apply_dropout(const Problem& problem, const Block& block, std::int64_t query,
                   std::int64_t first_key, const float* p, float* values, std::int64_t count) {
  DropoutRow row(problem, block.sequence.index, block.head, query);
  for (std::int64_t n = 0; n < count; ++n) {
    const float factor = row.factor(first_key + n);
    if (p[n] != kHidden) values[n] *= factor;
  }
}

void compute_scores(const StandardRun& run) {
  for_each_query_block("scores", run, [&](const Block& block) { score_block(run, block); });
}

void compute_softmax(const StandardRun& run, const TensorView& lse) {
  for_each_query_block("softmax", run, [&](const Block& block) { softmax_block(run, block, lse); });
}

void standard_forward(const StandardRun& run) {
  unpack_operands(run);
  compute_scores(run);
  compute_softmax(run, run.tensors.lse);
  if (run.problem.dropout != 0) {
    for_each_query_block("dropout", run, [&](const Block& block) { drop_block(run, block); });
  }
  sum_over_keys(run, Weights::p, run.plan.v, 1, run.tensors.out);
}

}  // namespace strobe::reference
