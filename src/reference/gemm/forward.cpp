#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "core/threads.h"
#include "reference/gemm/gemm.h"
#include "reference/row_math.h"

// The softmax is taken as the keys go by: each row remembers its maximum and its sum so far, and
// what was summed before a new maximum is scaled down to it.
namespace strobe::reference::gemm {
namespace {

constexpr std::int64_t kMostQueries = 256;

/// The softmax of one row so far.
struct RowState {
  float largest = -kInfinity;
  float total = 0;
  bool any = false;
};

/// Queries [begin, end) of one head.
struct QueryBlock {
  const Head& head;
  std::int64_t begin;
  std::int64_t end;
  RowState rows[kMostQueries];
};

/// Scores [rows, span] of one block of keys to probabilities that are still to be divided by the
/// row's sum, 0 where a key is hidden.
void softmax_row(QueryBlock& block, std::int64_t query, KeyRange keys, float* scores, float* sums) {
  const Head& head = block.head;
  const GemmRun& run = head.run;
  const RowKernels& kernels = *run.plan.kernels;
  RowState& row = block.rows[query - block.begin];
  const KeyRange all = head.visible(query);
  const KeyRange seen{std::clamp(all.begin, keys.begin, keys.end),
                      std::clamp(all.end, keys.begin, keys.end)};
  float* const first = scores + (seen.begin - keys.begin);

  const Head::Logits logits = head.logits(query, seen, first, nullptr);
  row.any = row.any || logits.any;
  const float largest = std::max(row.largest, logits.largest);
  const float base = largest == -kInfinity ? 0 : largest;
  if (largest > row.largest) {
    const float factor = std::exp(row.largest - base);
    row.total *= factor;
    multiply(sums, run.problem.value_dim(), factor);
    row.largest = largest;
  }
  row.total += kernels.exponentials(first, seen.size(), base);
  if (run.problem.dropout != 0) {
    float* keep = run.at<float>(run.plan.row, head.thread);
    head.draw_dropout(query, seen, keep);
    for (std::int64_t n = 0; n < seen.size(); ++n) first[n] *= keep[n];
  }
  std::fill(scores, first, 0.0F);
  std::fill(first + seen.size(), scores + keys.size(), 0.0F);
}

/// Divides a row's sums, stores them and its LSE.
void finish_row(const QueryBlock& block, std::int64_t query, float* sums, const TensorView& out,
                const TensorView& lse) {
  const Head& head = block.head;
  const std::int64_t columns = head.run.problem.value_dim();
  const RowState& row = block.rows[query - block.begin];
  const float largest = std::max(row.largest, head.sink);
  const bool nothing = largest == -kInfinity && !std::isnan(row.total) && !std::isnan(head.sink);
  float row_lse = -kInfinity;
  if (!row.any || nothing) {
    std::fill_n(sums, columns, 0.0F);
  } else {
    const float base = largest == -kInfinity ? 0 : largest;
    const float part = std::exp(row.largest - base);
    const float total = row.total * part + std::exp(head.sink - base);
    multiply(sums, columns, part / total);
    row_lse = largest + std::log(total);
  }
  narrow(sums, columns, out.dtype, row_data(out, query));
  if (lse.given()) store_element(lse.data, query * lse.strides[0], lse.dtype, row_lse);
}

/// One block of keys: what its values add to the sums of all queries.
void add_keys(QueryBlock& block, KeyRange keys) {
  const Head& head = block.head;
  const GemmRun& run = head.run;
  const GemmPlan& plan = run.plan;
  const std::int64_t dim = run.problem.dim, dim_v = run.problem.value_dim();
  const std::int64_t count = block.end - block.begin;
  const std::int64_t first = run.key_row(head.sequence, head.kv_head) + keys.begin;
  float* scores = run.at<float>(plan.scores, head.thread);
  float* sums = run.at<float>(plan.sums, head.thread);
  auto* weights = run.at<std::uint16_t>(plan.weights, head.thread);
  compute(run, {.rows = count,
                .columns = keys.size(),
                .depth = dim,
                .left = {run.at<void>(plan.queries, head.thread), dim},
                .right = {run.element_row(plan.k, first, dim), dim, true},
                .out = scores,
                .out_stride = plan.span});
  for (std::int64_t i = 0; i < count; ++i) {
    float* row = scores + i * plan.span;
    softmax_row(block, block.begin + i, keys, row, sums + i * dim_v);
    if (plan.bf16) plan.kernels->narrow(row, keys.size(), weights + i * plan.span);
  }
  const void* left = plan.bf16 ? static_cast<const void*>(weights) : scores;
  compute(run,
          {.rows = count,
           .columns = dim_v,
           .depth = keys.size(),
           .left = {left, plan.span},
           .right = {run.element_row(plan.v, first, dim_v), dim_v},
           .accumulate = true,
           .out = sums,
           .out_stride = dim_v},
          run.finite(plan.finite_v, head.sequence, head.kv_head, keys.begin / plan.key_block));
}

void forward_block(QueryBlock& block) {
  const Head& head = block.head;
  const GemmRun& run = head.run;
  const std::int64_t dim_v = run.problem.value_dim();
  const std::int64_t count = block.end - block.begin;
  float* sums = run.at<float>(run.plan.sums, head.thread);
  pack_rows(run, query_rows(run.tensors.q, head.sequence, head.index), block.begin, block.end,
            run.at<void>(run.plan.queries, head.thread));
  std::fill_n(sums, count * dim_v, 0.0F);

  const KeyRange span = head.visible(block.begin, block.end);
  const std::int64_t step = run.plan.key_block;
  for (std::int64_t key = span.begin; key < span.end; key += step) {
    add_keys(block, {key, std::min(key + step, span.end)});
  }

  const TensorView out = query_rows(run.tensors.out, head.sequence, head.index);
  const TensorView lse =
      run.tensors.lse.given() ? lse_rows(run.tensors.lse, head.sequence, head.index) : TensorView{};
  for (std::int64_t i = 0; i < count; ++i) {
    finish_row(block, block.begin + i, sums + i * dim_v, out, lse);
  }
}

}  // namespace

void gemm_forward(const GemmRun& run) {
  const Problem& problem = run.problem;
  const std::int64_t size = run.plan.query_block;
  const std::int64_t blocks = (problem.seqlen_q + size - 1) / size;
  const std::int64_t heads = problem.batch * problem.heads;
  parallel_for(
      "gemm forward", heads * blocks, run.plan.threads, [&](std::int64_t item, int thread) {
        // The last blocks, which see the most under a causal mask, go first.
        const std::int64_t begin = (blocks - 1 - item / heads) * size;
        const Sequence sequence = sequence_at(problem, run.tensors, item % heads / problem.heads);
        if (begin >= sequence.length_q) return;
        const ThreadOfCall serial(*run.plan.library);
        const Head head(run, sequence, item % problem.heads, thread);
        QueryBlock block{.head = head,
                         .begin = begin,
                         .end = std::min(begin + size, sequence.length_q),
                         .rows = {}};
        forward_block(block);
      });
}

}  // namespace strobe::reference::gemm
