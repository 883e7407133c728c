#include <cmath>
#include <limits>

#include "core/convert.h"
#include "cpu/flash.h"
#include "cpu/schedule.h"

namespace strobe::cpu {
namespace {

/// Runs one of the per-query-block kernels over all query blocks.
void over_queries(const FlashCall& call,
                  void (*kernel)(const HeadTask&, std::int64_t, std::int64_t, void*)) {
  const Problem& problem = call.problem();
  for_each_block(
      problem.batch, problem.heads, problem.seqlen_q, kQueryBlock, call.flash().threads,
      [&](std::int64_t sequence) { return call.length_q(sequence); },
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end,
          int thread) { kernel(call.task(sequence, head), begin, end, call.scratch(thread)); });
}

/// dk and dv: a block of keys belongs to one work item, which adds up all query heads of the
/// group in order.
void grad_kv(const FlashCall& call) {
  const Problem& problem = call.problem();
  const IsaKernels& kernels = *call.flash().kernels;
  for_each_block(
      problem.batch, problem.kv_heads(), problem.keys(), kKeyBlock, call.flash().threads,
      [&](std::int64_t sequence) { return call.length_k(sequence); },
      [&](std::int64_t sequence, std::int64_t key_head, std::int64_t begin, std::int64_t end,
          int thread) {
        void* scratch = call.scratch(thread);
        const std::int64_t first = key_head * problem.group();
        const HeadTask owner = call.task(sequence, first);
        kernels.grad_kv_start(owner, begin, end, scratch);
        for (std::int64_t head = first; head < first + problem.group(); ++head) {
          kernels.grad_kv_add(call.task(sequence, head), begin, end, scratch);
        }
        kernels.grad_kv_finish(owner, begin, end, scratch);
      });
}

/// A rectangle of the bias gradient.
struct BiasTile {
  std::int64_t batch, head;  // of the bias tensor, 0 where it is broadcast
  std::int64_t q_begin, q_end, k_begin, k_end;
};

/// Adds up what every sequence and head that shares this bias contributes, in order.
void sum_bias_tile(const FlashCall& call, const BiasTile& tile, float* sums, void* scratch) {
  const Problem& problem = call.problem();
  const Bias& bias = *problem.bias;
  std::fill_n(sums, kQueryBlock * kKeyBlock, 0.0F);
  const std::int64_t last_sequence = bias.per_batch ? tile.batch + 1 : problem.batch;
  const std::int64_t last_head = bias.per_head ? tile.head + 1 : problem.heads;
  for (std::int64_t sequence = tile.batch; sequence < last_sequence; ++sequence) {
    const std::int64_t q_end = std::min(tile.q_end, call.length_q(sequence));
    const std::int64_t k_end = std::min(tile.k_end, call.length_k(sequence));
    if (q_end <= tile.q_begin || k_end <= tile.k_begin) continue;
    for (std::int64_t head = tile.head; head < last_head; ++head) {
      call.flash().kernels->grad_bias_add(call.task(sequence, head), tile.q_begin, q_end,
                                          tile.k_begin, k_end, sums, scratch);
    }
  }
}

void grad_bias(const FlashCall& call) {
  const TensorView& dbias = call.tensors().dbias;
  if (!dbias.given()) return;
  const Problem& problem = call.problem();
  const bool per_query = problem.bias->per_query;
  // A bias without a row per query is summed over all queries by one item.
  const std::int64_t query_block =
      per_query ? kQueryBlock : std::max<std::int64_t>(problem.seqlen_q, 1);
  const std::int64_t query_blocks = (problem.seqlen_q + query_block - 1) / query_block;
  const std::int64_t owners =
      dbias.shape[0] * dbias.shape[1] * std::max<std::int64_t>(query_blocks, per_query ? 0 : 1);
  for_each_block(
      1, owners, problem.keys(), kKeyBlock, call.flash().threads,
      [&](std::int64_t) { return problem.keys(); },
      [&](std::int64_t, std::int64_t owner, std::int64_t k_begin, std::int64_t k_end, int thread) {
        const std::int64_t pair = owner % (dbias.shape[0] * dbias.shape[1]);
        const std::int64_t q_begin = owner / (dbias.shape[0] * dbias.shape[1]) * query_block;
        const BiasTile tile{pair / dbias.shape[1],
                            pair % dbias.shape[1],
                            q_begin,
                            std::min(q_begin + query_block, problem.seqlen_q),
                            k_begin,
                            k_end};
        float* sums = call.bias_sums(thread);
        sum_bias_tile(call, tile, sums, call.scratch(thread));
        const std::int64_t rows = per_query ? tile.q_end - tile.q_begin : 1;
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::int64_t element = tile.batch * dbias.strides[0] +
                                       tile.head * dbias.strides[1] +
                                       (per_query ? q_begin + i : 0) * dbias.strides[2] + k_begin;
          narrow(sums + i * kKeyBlock, k_end - k_begin, dbias.dtype,
                 static_cast<std::byte*>(dbias.data) +
                     element * static_cast<std::int64_t>(size_of(dbias.dtype)));
        }
      });
}

/// The sink has probability exp(sink - lse) and no value: d sink = - sum of p_sink * delta.
void grad_sinks(const FlashCall& call) {
  const TensorView& dsinks = call.tensors().dsinks;
  if (!dsinks.given()) return;
  const Problem& problem = call.problem();
  parallel_for(problem.heads, call.flash().threads, [&](std::int64_t head, int) {
    double sum = 0;
    for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
      const HeadTask task = call.task(sequence, head);
      for (std::int64_t i = 0; i < task.len_q; ++i) {
        if (task.lse[i] == -std::numeric_limits<float>::infinity()) continue;
        const double raw = std::exp(static_cast<double>(task.sink) - task.lse[i]);
        sum -= raw * (1.0 + task.correction[i]) * task.delta[i];
      }
    }
    static_cast<float*>(dsinks.data)[head * dsinks.strides[0]] = static_cast<float>(sum);
  });
}

}  // namespace

void backward(const FlashCall& call) {
  over_queries(call, call.flash().kernels->row_statistics);
  over_queries(call, call.flash().kernels->grad_q);
  grad_kv(call);
  grad_bias(call);
  grad_sinks(call);
}

}  // namespace strobe::cpu
