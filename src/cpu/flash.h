#pragma once

#include <cstdint>
#include <span>

#include "cpu/head_task.h"
#include "cpu/schedule.h"
#include "strobe/implementation.h"

namespace strobe::cpu {

/// How a call is cut into items, where the pieces of its workspace lie, and which kernels work in
/// them. Cuts between keys depend on the problem alone, never on the number of threads, so that
/// sums are always taken in the same order.
struct FlashPlan {
  const IsaKernels* kernels = nullptr;
  int threads = 1;
  std::int64_t query_rows = 0;  // of a forward item, see WorkItem
  std::int64_t split_keys = 0;  // keys of an item
  std::int64_t splits = 1;      // that the longest sequence's keys are cut into

  std::int64_t heads_offset = 0;  // HeadTask [threads][group]
  std::int64_t items_offset = 0;  // WorkItem [2][max_items]
  std::int64_t max_items = 0;
  std::int64_t scratch_offset = 0;  // [threads][scratch_bytes]
  std::int64_t scratch_bytes = 0;
  PackedBlock packed{};                // of what items share, see ForwardItem::packs; or no keys
  std::int64_t packed_blocks = 0;      // of the longest sequence
  std::int64_t packs_offset = 0;       // [batch][kv_heads][packed_blocks][packed.bytes], forward
  std::int64_t partial_offset = 0;     // fp32 [splits][heads * total_q][dim_v + 2], forward
  std::int64_t dq_offset = 0;          // fp32 [splits][heads * total_q][dim], backward
  std::int64_t statistics_offset = 0;  // fp32 [2, heads, total_q]: delta, correction; backward
  // Few queries: fp32 [splits][heads * total_q][kStatisticsSums], backward; or none.
  bool statistics_are_split = false;
  std::int64_t statistics_sums_offset = 0;
  std::int64_t bias_offset = 0;  // fp32 [threads][kBiasQueries, kBiasKeys], backward
};

/// The plan, and the bytes of workspace that it takes.
struct PlannedFlash {
  FlashPlan plan;
  std::int64_t bytes = 0;
};
PlannedFlash plan_flash(const Problem& problem, const IsaKernels& kernels, int threads);

/// One call: the plan, the operands and the workspace, with the arithmetic that finds a head.
class FlashCall {
 public:
  FlashCall(const Plan& plan, const Tensors& tensors, void* workspace);

  const FlashPlan& flash() const { return flash_; }
  const Problem& problem() const { return problem_; }
  const Tensors& tensors() const { return tensors_; }

  /// The scratch of one thread.
  void* scratch(int thread) const;
  float* bias_sums(int thread) const;

  /// Room for the items of a pass, twice.
  std::span<WorkItem> items() const;

  /// One thread's tasks for the heads that share a key head.
  const HeadTask* tasks(std::int64_t sequence, std::int64_t key_head, int thread) const;

  /// Where the keys that a key head's items share lie packed; null: each packs them for itself.
  void* packs(std::int64_t sequence, std::int64_t key_head) const;

  /// Where a row's sums lie in an array of [splits][heads * total_q][width].
  float* row_sums(std::int64_t offset, std::int64_t split, std::int64_t sequence,
                  std::int64_t key_head, std::int64_t row, std::int64_t width) const;
  std::int64_t split_stride(std::int64_t width) const;
  std::int64_t splits_of(std::int64_t sequence) const;

  std::int64_t length_q(std::int64_t sequence) const;
  std::int64_t length_k(std::int64_t sequence) const;

  HeadTask task(std::int64_t sequence, std::int64_t head) const;

 private:
  void set_dropout(HeadTask& task, std::int64_t sequence, std::int64_t head) const;
  void set_gradients(HeadTask& task, std::int64_t sequence, std::int64_t head) const;

  Rows rows(const TensorView& view, std::int64_t sequence, std::int64_t head,
            const TensorView& offsets) const;
  Rows bias_rows(std::int64_t sequence, std::int64_t head) const;
  float* statistic(float* base, std::int64_t sequence, std::int64_t head,
                   std::int64_t sequence_stride, std::int64_t head_stride) const;

  const Problem& problem_;
  const Tensors& tensors_;
  const FlashPlan& flash_;
  std::byte* workspace_;
};

void forward(const FlashCall& call);
void backward(const FlashCall& call);

}  // namespace strobe::cpu
