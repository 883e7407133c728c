#include "core/convert.h"
#include "reference/row_math.h"
#include "reference/standard.h"

namespace strobe::reference {
namespace {

// dP = dO Vᵀ, without dropout.
void dp_block(const StandardRun& run, const Block& block) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  float* dp = run.scratch(run.plan.scores_row, block.thread);
  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    void* stored = run.at(run.plan.dscores, sequence, block.head, query, keys.begin);
    multiply_transposed(run, block, run.floats(run.plan.dout, sequence, block.head, query),
                        run.plan.v_t, keys, dp);
    narrow(dp, keys.size(), problem.dtype, stored);
  }
}

// dS = P ∘ (dP - D), D = rowsum(P ∘ dP), in the place of dP after dropout; 0 where a key is hidden.
// The sink has no value, so its dP is 0.
void ds_block(const StandardRun& run, const Block& block) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  float* p = run.scratch(run.plan.scores_row, block.thread);
  float* dp = run.scratch(run.plan.other_row, block.thread);
  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    void* stored = run.at(run.plan.dscores, sequence, block.head, query, keys.begin);
    widen(run.at(run.plan.scores, sequence, block.head, query, keys.begin), keys.size(),
          problem.dtype, p);
    widen(stored, keys.size(), problem.dtype, dp);
    if (problem.dropout != 0) {
      apply_dropout(problem, block, query, keys.begin, p, dp, keys.size());
      store_rounded(problem, dp, keys.size(), stored);
    }
    float d = 0;
    for (std::int64_t n = 0; n < keys.size(); ++n) d += p[n] == kHidden ? 0 : p[n] * dp[n];
    for (std::int64_t n = 0; n < keys.size(); ++n) {
      dp[n] = p[n] == kHidden ? 0 : p[n] * (dp[n] - d);
    }
    narrow(dp, keys.size(), problem.dtype, stored);
    if (problem.sinks) *run.floats(run.plan.sinks, sequence, block.head, 0, query) *= -d;
  }
}

// dS through softcap c·tanh(x/c), whose derivative is 1 - tanh².
void softcap_block(const StandardRun& run, const Block& block) {
  const Problem& problem = run.problem;
  const std::int64_t sequence = block.sequence.index;
  const auto cap = static_cast<float>(problem.softcap);
  float* ds = run.scratch(run.plan.scores_row, block.thread);
  float* capped = run.scratch(run.plan.other_row, block.thread);
  for (std::int64_t query = block.begin; query < block.end; ++query) {
    const KeyRange keys = block.visible(problem, query);
    void* stored = run.at(run.plan.dscores, sequence, block.head, query, keys.begin);
    widen(stored, keys.size(), problem.dtype, ds);
    widen(run.at(run.plan.capped, sequence, block.head, query, keys.begin), keys.size(),
          problem.dtype, capped);
    for (std::int64_t n = 0; n < keys.size(); ++n) {
      const float tanh = capped[n] / cap;
      ds[n] *= 1 - tanh * tanh;
    }
    narrow(ds, keys.size(), problem.dtype, stored);
  }
}

struct Span {
  std::int64_t begin;
  std::int64_t end;
};

// Entries of an axis that one entry of dbias sums over: its own, or all where it is broadcast.
Span summed(bool own, std::int64_t index, std::int64_t size) {
  return own ? Span{index, std::min(index + 1, size)} : Span{0, size};
}

// One row of dbias [batch|1, heads|1, seqlen_q|1, seqlen_k]: dS before softcap, summed over the
// axes that the bias is broadcast on.
void dbias_row(const StandardRun& run, std::int64_t b, std::int64_t h, std::int64_t i, int thread) {
  const Problem& problem = run.problem;
  const Span sequences = summed(problem.bias->per_batch, b, problem.batch);
  const Span heads = summed(problem.bias->per_head, h, problem.heads);
  float* sums = run.scratch(run.plan.scores_row, thread);
  float* ds = run.scratch(run.plan.other_row, thread);
  std::fill_n(sums, problem.keys(), 0.0F);
  for (std::int64_t s = sequences.begin; s < sequences.end; ++s) {
    const Sequence sequence = sequence_at(problem, run.tensors, s);
    const Span queries = summed(problem.bias->per_query, i, sequence.length_q);
    for (std::int64_t head = heads.begin; head < heads.end; ++head) {
      for (std::int64_t query = queries.begin; query < queries.end; ++query) {
        const KeyRange keys = problem.visible(query, sequence.length_q, sequence.length_k);
        widen(run.at(run.plan.dscores, s, head, query, keys.begin), keys.size(), problem.dtype, ds);
        for (std::int64_t n = 0; n < keys.size(); ++n) sums[keys.begin + n] += ds[n];
      }
    }
  }
  narrow(sums, problem.keys(), problem.dtype,
         row_data(run.tensors.dbias.select(0, b).select(0, h), i));
}

void compute_dbias(const StandardRun& run) {
  const std::int64_t heads = run.tensors.dbias.shape[1];
  const std::int64_t queries = run.tensors.dbias.shape[2];
  parallel_for("bias gradient", run.tensors.dbias.shape[0] * heads * queries, run.plan.threads,
               [&](std::int64_t item, int thread) {
                 dbias_row(run, item / queries / heads, item / queries % heads, item % queries,
                           thread);
               });
}

void compute_dsinks(const StandardRun& run) {
  const TensorView& dsinks = run.tensors.dsinks;
  for (std::int64_t head = 0; head < run.problem.heads; ++head) {
    float total = 0;
    for (std::int64_t s = 0; s < run.problem.batch; ++s) {
      const Sequence sequence = sequence_at(run.problem, run.tensors, s);
      total += sum(run.floats(run.plan.sinks, s, head, 0), sequence.length_q);
    }
    store_element(dsinks.data, head * dsinks.strides[0], dsinks.dtype, total);
  }
}

}  // namespace

void standard_backward(const StandardRun& run) {
  const StandardPlan& plan = run.plan;
  const Tensors& tensors = run.tensors;
  const auto scale = static_cast<float>(run.problem.softmax_scale());
  unpack_operands(run);
  compute_scores(run);
  compute_softmax(run, {});
  sum_over_queries(run, Weights::p, plan.dout, 1, tensors.dv);
  for_each_query_block("gradient of weights", run,
                       [&](const Block& block) { dp_block(run, block); });
  for_each_query_block("gradient of softmax", run,
                       [&](const Block& block) { ds_block(run, block); });
  if (tensors.dbias.given()) compute_dbias(run);
  if (tensors.dsinks.given()) compute_dsinks(run);
  if (run.problem.softcap != 0) {
    for_each_query_block("gradient of softcap", run,
                         [&](const Block& block) { softcap_block(run, block); });
  }
  sum_over_keys(run, Weights::ds, plan.k, scale, tensors.dq);
  sum_over_queries(run, Weights::ds, plan.q, scale, tensors.dk);
}

}  // namespace strobe::reference
