#include <algorithm>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "cpu/flash.h"
#include "cpu/schedule.h"

namespace strobe::cpu {
namespace {

constexpr std::int64_t kQueryBlock = 192;  // of the passes that go over queries

/// Calls body(task, begin, end, thread) for all blocks of queries.
template <class Body>
void over_queries(std::string_view name, const FlashCall& call, Body&& body) {
  const Problem& problem = call.problem();
  for_each_block(
      name, problem.batch, problem.heads, problem.seqlen_q, kQueryBlock, call.flash().threads,
      [&](std::int64_t sequence) { return call.length_q(sequence); },
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end,
          int thread) { body(sequence, head, begin, end, thread); });
}

/// Where one item has all keys of a sequence, it needs little help.
bool stores_dq(const FlashCall& call, std::int64_t sequence) {
  const std::int64_t keys = call.length_k(sequence);
  return keys > 0 && keys <= std::min(kAloneKeys, call.flash().split_keys);
}
bool finds_statistics(const FlashCall& call, std::int64_t sequence) {
  return stores_dq(call, sequence) && call.length_k(sequence) <= kOneBlockKeys;
}

/// Where queries are too few to busy the cores, a head's keys are split here as well.
void split_statistics(const FlashCall& call) {
  const Problem& problem = call.problem();
  const FlashPlan& plan = call.flash();
  const auto sums = [&](std::int64_t split, std::int64_t sequence, std::int64_t head,
                        std::int64_t query) {
    const std::int64_t group = problem.group();
    return call.row_sums(plan.statistics_sums_offset, split, sequence, head / group,
                         head % group * call.length_q(sequence) + query, kStatisticsSums);
  };
  for_each_block(
      "row statistics", problem.batch, problem.heads, problem.keys(), plan.split_keys, plan.threads,
      [&](std::int64_t sequence) { return call.length_k(sequence); },
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end,
          int thread) {
        if (finds_statistics(call, sequence)) return;
        plan.kernels->sum_statistics(call.task(sequence, head), begin, end,
                                     sums(begin / plan.split_keys, sequence, head, 0),
                                     call.scratch(thread));
      });
  over_queries(
      "merge statistics", call,
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end, int) {
        if (finds_statistics(call, sequence)) return;
        const HeadTask task = call.task(sequence, head);
        const std::int64_t splits = task.len_k == 0 ? 0 : call.splits_of(sequence);
        plan.kernels->merge_statistics(task, begin, end, sums(0, sequence, head, begin), splits,
                                       call.split_stride(kStatisticsSums));
      });
}

void row_statistics(const FlashCall& call) {
  if (call.problem().keys() <= std::min(kOneBlockKeys, call.flash().split_keys)) return;
  if (call.flash().statistics_are_split) return split_statistics(call);
  over_queries("row statistics", call,
               [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end,
                   int thread) {
                 if (finds_statistics(call, sequence)) return;
                 call.flash().kernels->row_statistics(call.task(sequence, head), begin, end,
                                                      call.scratch(thread));
               });
}

/// All items of the call, as they are dealt.
std::span<WorkItem> backward_items(const FlashCall& call) {
  const Problem& problem = call.problem();
  const FlashPlan& plan = call.flash();
  const std::span<WorkItem> room = call.items();
  std::size_t count = 0;
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    const std::int64_t keys = call.length_k(sequence);
    if (keys == 0) continue;
    const HeadTask task = call.task(sequence, 0);
    for (std::int64_t key = 0; key < keys; key += plan.split_keys) {
      WorkItem item{.sequence = static_cast<std::int32_t>(sequence),
                    .row_begin = 0,
                    .row_end = problem.group() * task.len_q,
                    .key_begin = key,
                    .key_end = std::min(key + plan.split_keys, keys)};
      item.cost = work(task, item);
      for (std::int64_t head = 0; head < problem.kv_heads(); ++head) {
        item.key_head = static_cast<std::int32_t>(head);
        room[count++] = item;
      }
    }
  }
  deal(room.first(count), room.last(count), plan.threads);
  return room.first(count);
}

/// dk, dv and every split's share of dq.
void grad_qkv(const FlashCall& call) {
  const FlashPlan& plan = call.flash();
  const std::span<const WorkItem> items = backward_items(call);
  parallel_for("flash backward", static_cast<std::int64_t>(items.size()), plan.threads,
               [&](std::int64_t i, int thread) {
                 const WorkItem& item = items[static_cast<std::size_t>(i)];
                 BackwardItem prepared{.heads = call.tasks(item.sequence, item.key_head, thread),
                                       .group = call.problem().group(),
                                       .key_begin = item.key_begin,
                                       .key_end = item.key_end,
                                       .statistics = finds_statistics(call, item.sequence)};
                 if (!stores_dq(call, item.sequence)) {
                   prepared.dq = call.row_sums(plan.dq_offset, item.key_begin / plan.split_keys,
                                               item.sequence, item.key_head, 0, call.problem().dim);
                 }
                 plan.kernels->backward(prepared, call.scratch(thread));
               });
}

void sum_dq(const FlashCall& call) {
  const FlashPlan& plan = call.flash();
  const std::int64_t dim = call.problem().dim;
  const std::int64_t group = call.problem().group();
  if (!call.problem().varlen() && call.problem().batch > 0 && stores_dq(call, 0)) return;
  over_queries(
      "sum dq", call,
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end, int) {
        if (stores_dq(call, sequence)) return;
        const HeadTask task = call.task(sequence, head);
        float* shares = call.row_sums(plan.dq_offset, 0, sequence, head / group,
                                      head % group * task.len_q + begin, dim);
        const std::int64_t splits = task.len_k == 0 ? 0 : call.splits_of(sequence);
        plan.kernels->sum_dq(task, begin, end, shares, splits, call.split_stride(dim),
                             plan.split_keys);
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
  std::fill_n(sums, kBiasQueries * kBiasKeys, 0.0F);
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
      per_query ? kBiasQueries : std::max<std::int64_t>(problem.seqlen_q, 1);
  const std::int64_t query_blocks = (problem.seqlen_q + query_block - 1) / query_block;
  const std::int64_t owners =
      dbias.shape[0] * dbias.shape[1] * std::max<std::int64_t>(query_blocks, per_query ? 0 : 1);
  for_each_block(
      "bias gradient", 1, owners, problem.keys(), kBiasKeys, call.flash().threads,
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
          narrow(sums + i * kBiasKeys, k_end - k_begin, dbias.dtype,
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
  parallel_for("sink gradient", problem.heads, call.flash().threads, [&](std::int64_t head, int) {
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
  row_statistics(call);
  grad_qkv(call);
  sum_dq(call);
  grad_bias(call);
  grad_sinks(call);
}

}  // namespace strobe::cpu
