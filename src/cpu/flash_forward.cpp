#include "cpu/flash.h"
#include "cpu/schedule.h"

namespace strobe::cpu {
namespace {

/// All items of the call, as they are dealt.
std::span<WorkItem> forward_items(const FlashCall& call) {
  const Problem& problem = call.problem();
  const FlashPlan& plan = call.flash();
  const std::span<WorkItem> room = call.items();
  std::size_t count = 0;
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    const std::int64_t rows = problem.group() * call.length_q(sequence);
    if (rows == 0) continue;
    const HeadTask task = call.task(sequence, 0);
    for (std::int64_t row = 0; row < rows; row += plan.query_rows) {
      for (std::int64_t s = 0; s < call.splits_of(sequence); ++s) {
        WorkItem item{.sequence = static_cast<std::int32_t>(sequence),
                      .row_begin = row,
                      .row_end = std::min(row + plan.query_rows, rows),
                      .key_begin = s * plan.split_keys,
                      .key_end = std::min((s + 1) * plan.split_keys, task.len_k)};
        item.cost = work(task, item);
        for (std::int64_t head = 0; head < problem.kv_heads(); ++head) {
          item.key_head = static_cast<std::int32_t>(head);
          room[count++] = item;
        }
      }
    }
  }
  deal(room.first(count), room.last(count), plan.threads);
  return room.first(count);
}

void pack_keys(const FlashCall& call) {
  const Problem& problem = call.problem();
  const FlashPlan& plan = call.flash();
  for_each_block(
      "pack keys", problem.batch, problem.kv_heads(), problem.keys(), plan.packed.keys,
      plan.threads, [&](std::int64_t sequence) { return call.length_k(sequence); },
      [&](std::int64_t sequence, std::int64_t key_head, std::int64_t key, std::int64_t, int) {
        void* packs = call.packs(sequence, key_head);
        if (packs == nullptr) return;
        plan.kernels->pack_keys(call.task(sequence, key_head * problem.group()), key, packs);
      });
}

}  // namespace

void forward(const FlashCall& call) {
  const FlashPlan& plan = call.flash();
  const std::int64_t width = call.problem().value_dim() + 2;
  const std::span<const WorkItem> items = forward_items(call);
  if (plan.packed.keys > 0) pack_keys(call);
  const auto prepared = [&](const WorkItem& item, int thread) {
    ForwardItem result{.heads = call.tasks(item.sequence, item.key_head, thread),
                       .group = call.problem().group(),
                       .row_begin = item.row_begin,
                       .row_end = item.row_end,
                       .key_begin = item.key_begin,
                       .key_end = item.key_end,
                       .packs = call.packs(item.sequence, item.key_head)};
    if (plan.splits > 1) {
      result.partial = call.row_sums(plan.partial_offset, item.key_begin / plan.split_keys,
                                     item.sequence, item.key_head, item.row_begin, width);
    }
    return result;
  };
  const auto count = static_cast<std::int64_t>(items.size());
  parallel_for("flash forward", count, plan.threads, [&](std::int64_t i, int thread) {
    plan.kernels->forward(prepared(items[static_cast<std::size_t>(i)], thread),
                          call.scratch(thread));
  });
  if (plan.splits == 1) return;
  parallel_for("merge splits", count, plan.threads, [&](std::int64_t i, int thread) {
    const WorkItem& item = items[static_cast<std::size_t>(i)];
    if (item.key_begin != 0) return;
    plan.kernels->merge(prepared(item, thread), call.splits_of(item.sequence),
                        call.split_stride(width));
  });
}

}  // namespace strobe::cpu
