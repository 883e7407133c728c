#include <algorithm>

#include "cpu/flash.h"

namespace strobe::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return ceil_div(n, step) * step;
}

/// Hands out aligned pieces of the workspace.
class Layout {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t offset = used_;
    used_ += round_up(bytes, kAlignment);
    return offset;
  }
  std::int64_t used() const { return used_; }

 private:
  std::int64_t used_ = 0;
};

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

/// Where there are fewer panels of queries than this, the keys are split as well: enough for the
/// cores of a large machine.
constexpr std::int64_t kEnoughItems = 64;
constexpr std::int64_t kFewestKeys = 512;  // of a split, so that merging costs little

/// Keys of a split: about `wanted` splits of at least `fewest` keys.
void split(FlashPlan& plan, std::int64_t keys, std::int64_t wanted, std::int64_t fewest) {
  const std::int64_t splits =
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(keys / fewest, 1));
  plan.split_keys = std::max(round_up(ceil_div(keys, splits), fewest), fewest);
  plan.splits = std::max<std::int64_t>(ceil_div(keys, plan.split_keys), 1);
}

constexpr std::int64_t kItemsOfAThread = 4;  // or more, lest all wait for one

/// Of `share` rows for each thread. Keys are packed once for all rows of an item, which takes a
/// quarter of the time if it has 64 of them. So where items take equally long there are only as
/// many as leave enough rows, and one for each thread at least.
std::int64_t rows_of_item(const Problem& problem, std::int64_t share) {
  constexpr std::int64_t kEnoughRows = 256;
  constexpr std::int64_t kMostRows = 1024;
  const Window window = problem.effective_window();
  const bool equal = window.left < 0 && window.right < 0 && !problem.varlen();
  const std::int64_t fewest = equal ? std::min(share, kEnoughRows) : 1;
  return std::clamp(ceil_div(share, kItemsOfAThread), fewest, kMostRows);
}

/// Rows of an item that packs no keys, where one that does has `rows`: two panels or more, so that
/// the products of one are multiplied beside the exponentials of another.
std::int64_t rows_of_sharing_item(std::int64_t rows, std::int64_t share) {
  constexpr std::int64_t kEnoughRows = 64;
  return std::min(rows, std::max(ceil_div(share, kItemsOfAThread), kEnoughRows));
}

/// Whether keys are packed once for all items of their head, ahead of these, and not by each item
/// for itself: where so many items of so few rows would pack the same that it is worth a meeting of
/// all threads, which have enough blocks of `bytes` to pack, and all take little memory.
bool packs_are_shared(std::int64_t items, std::int64_t rows, std::int64_t blocks,
                      std::int64_t bytes, int threads) {
  constexpr std::int64_t kManyItems = 4;
  constexpr std::int64_t kFewRows = 512;
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  const std::int64_t enough_blocks = std::max(threads / 2, 2);
  return items >= kManyItems && rows < kFewRows && blocks >= enough_blocks &&
         blocks <= kMostBytes / bytes;
}

/// Cuts the `rows` of queries of each of `heads` key heads into items of whole panels.
void cut_rows(const Problem& problem, std::int64_t rows, std::int64_t heads, FlashPlan& plan,
              Layout& layout) {
  const std::int64_t panel = plan.kernels->panel(problem.dtype);
  const auto equal_items = [&](std::int64_t most) {
    return round_up(ceil_div(rows, ceil_div(rows, most)), panel);
  };
  const std::int64_t share = ceil_div(rows * heads * plan.splits, plan.threads);
  const std::int64_t most = rows_of_item(problem, share);
  plan.query_rows = equal_items(most);

  const PackedBlock block =
      plan.kernels->packed_block(problem.dtype, problem.dim, problem.value_dim());
  const std::int64_t blocks = ceil_div(problem.keys(), block.keys);
  const std::int64_t items = ceil_div(rows, plan.query_rows);
  if (!packs_are_shared(items, plan.query_rows, heads * blocks, block.bytes, plan.threads)) return;
  plan.query_rows = equal_items(rows_of_sharing_item(most, share));
  plan.packed = block;
  plan.packed_blocks = blocks;
  plan.packs_offset = layout.take(heads * blocks * block.bytes);
}

void plan_forward(const Problem& problem, FlashPlan& plan, Layout& layout) {
  const std::int64_t panel = plan.kernels->panel(problem.dtype);
  const std::int64_t pairs = std::max<std::int64_t>(problem.batch * problem.kv_heads(), 1);
  const std::int64_t rows = std::max<std::int64_t>(problem.group() * problem.seqlen_q, 1);
  split(plan, problem.keys(), ceil_div(kEnoughItems, pairs * ceil_div(rows, panel)), kFewestKeys);
  cut_rows(problem, rows, pairs, plan, layout);

  plan.scratch_bytes = round_up(
      static_cast<std::int64_t>(plan.kernels->forward_scratch(
          problem.dtype, problem.dim, problem.value_dim(), std::min(plan.query_rows, rows))),
      kAlignment);
  plan.max_items = problem.kv_heads() *
                   (problem.group() * problem.total_q() / plan.query_rows + problem.batch) *
                   plan.splits;
  if (plan.splits > 1) {
    plan.partial_offset = layout.take(plan.splits * problem.heads * problem.total_q() *
                                      (problem.value_dim() + 2) * kFloat);
  }
}

void plan_backward(const Problem& problem, FlashPlan& plan, Layout& layout) {
  // Every split has its own share of dq, so there are only as many as keep the cores busy, and
  // fewer where they would take too much memory.
  constexpr std::int64_t kItems = 32;
  constexpr std::int64_t kKeys = 256;
  constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;
  const std::int64_t pairs = std::max<std::int64_t>(problem.batch * problem.kv_heads(), 1);
  const std::int64_t share =
      std::max<std::int64_t>(problem.heads * problem.total_q() * problem.dim * kFloat, 1);
  split(plan, problem.keys(), std::min(ceil_div(kItems, pairs), kMostBytes / share), kKeys);
  plan.scratch_bytes = round_up(static_cast<std::int64_t>(plan.kernels->backward_scratch(
                                    problem.dtype, problem.dim, problem.value_dim())),
                                kAlignment);
  plan.max_items = problem.batch * problem.kv_heads() * plan.splits;
  plan.dq_offset = layout.take(plan.splits * share);
  plan.statistics_offset = layout.take(2 * problem.heads * problem.total_q() * kFloat);
  plan.statistics_are_split =
      problem.dtype == DType::fp32 && problem.seqlen_q <= kFewQueries && plan.splits > 1;
  if (plan.statistics_are_split) {
    plan.statistics_sums_offset =
        layout.take(plan.splits * problem.heads * problem.total_q() * kStatisticsSums * kFloat);
  }
  if (problem.bias)
    plan.bias_offset = layout.take(plan.threads * kBiasQueries * kBiasKeys * kFloat);
}

}  // namespace

PlannedFlash plan_flash(const Problem& problem, const IsaKernels& kernels, int threads) {
  FlashPlan plan;
  plan.kernels = &kernels;
  plan.threads = threads;
  Layout layout;
  if (problem.pass == Pass::forward)
    plan_forward(problem, plan, layout);
  else
    plan_backward(problem, plan, layout);
  plan.heads_offset =
      layout.take(threads * problem.group() * static_cast<std::int64_t>(sizeof(HeadTask)));
  plan.items_offset = layout.take(2 * plan.max_items * static_cast<std::int64_t>(sizeof(WorkItem)));
  plan.scratch_offset = layout.take(threads * plan.scratch_bytes);
  return {plan, layout.used()};
}

}  // namespace strobe::cpu
