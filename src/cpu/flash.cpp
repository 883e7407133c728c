#include "cpu/flash.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/threads.h"
#include "cpu/isa.h"
#include "strobe/dropout.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cpu {
namespace {

class Flash final : public Implementation {
 public:
  std::string_view name() const override { return "flash"; }
  std::string_view summary() const override {
    return "flash attention on the CPU: tiled, online softmax, memory linear in the length";
  }
  Device::Kind device() const override { return Device::Kind::cpu; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    Support support;
    if (problem.dtype != DType::fp32 && problem.dtype != DType::fp16 &&
        problem.dtype != DType::bf16) {
      support.missing.push_back(
          concat("dtype ", name_of(problem.dtype), " (has fp32, fp16, bf16)"));
    }
    return support;
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const IsaKernels& kernels = active_isa();
    const PlannedFlash planned =
        plan_flash(problem, kernels, options.threads > 0 ? options.threads : default_threads());
    const FlashPlan& flash = planned.plan;
    std::vector<std::pair<std::string, std::string>> tuning = {
        {"isa", kernels.name},
        {"threads", std::to_string(flash.threads)},
        {"split_keys", std::to_string(flash.split_keys)}};
    if (problem.pass == Pass::forward) {
      tuning.emplace_back("query_rows", std::to_string(flash.query_rows));
      tuning.emplace_back("packs", flash.packed.keys > 0 ? "shared" : "own");
    }
    return {.problem = problem,
            .tuning = std::move(tuning),
            .workspace_bytes = static_cast<std::size_t>(planned.bytes),
            .state = std::make_shared<FlashPlan>(flash)};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace, Stream) const override {
    const FlashCall call(plan, tensors, workspace);
    if (plan.problem.pass == Pass::forward)
      forward(call);
    else
      backward(call);
  }
};

std::int64_t offset_of(const TensorView& offsets, std::int64_t sequence) {
  return static_cast<const std::int32_t*>(offsets.data)[sequence];
}

}  // namespace

FlashCall::FlashCall(const Plan& plan, const Tensors& tensors, void* workspace)
    : problem_(plan.problem),
      tensors_(tensors),
      flash_(*static_cast<const FlashPlan*>(plan.state.get())),
      workspace_(static_cast<std::byte*>(workspace)) {}

void* FlashCall::scratch(int thread) const {
  return workspace_ + flash_.scratch_offset + thread * flash_.scratch_bytes;
}

float* FlashCall::bias_sums(int thread) const {
  return reinterpret_cast<float*>(workspace_ + flash_.bias_offset) +
         thread * kBiasQueries * kBiasKeys;
}

std::span<WorkItem> FlashCall::items() const {
  return {reinterpret_cast<WorkItem*>(workspace_ + flash_.items_offset),
          static_cast<std::size_t>(2 * flash_.max_items)};
}

const HeadTask* FlashCall::tasks(std::int64_t sequence, std::int64_t key_head, int thread) const {
  auto* tasks =
      reinterpret_cast<HeadTask*>(workspace_ + flash_.heads_offset) + thread * problem_.group();
  for (std::int64_t h = 0; h < problem_.group(); ++h)
    new (tasks + h) HeadTask(task(sequence, key_head * problem_.group() + h));
  return tasks;
}

void* FlashCall::packs(std::int64_t sequence, std::int64_t key_head) const {
  const bool one_item = problem_.group() * length_q(sequence) <= flash_.query_rows;
  if (one_item || flash_.packed.keys == 0) return nullptr;
  const std::int64_t head = sequence * problem_.kv_heads() + key_head;
  return workspace_ + flash_.packs_offset + head * flash_.packed_blocks * flash_.packed.bytes;
}

std::int64_t FlashCall::split_stride(std::int64_t width) const {
  return problem_.heads * problem_.total_q() * width;
}

std::int64_t FlashCall::splits_of(std::int64_t sequence) const {
  return std::max<std::int64_t>(1,
                                (length_k(sequence) + flash_.split_keys - 1) / flash_.split_keys);
}

float* FlashCall::row_sums(std::int64_t offset, std::int64_t split, std::int64_t sequence,
                           std::int64_t key_head, std::int64_t row, std::int64_t width) const {
  const std::int64_t first_query =
      problem_.varlen() ? offset_of(tensors_.cu_seqlens_q, sequence) : sequence * problem_.seqlen_q;
  const std::int64_t first =
      first_query * problem_.heads + key_head * problem_.group() * length_q(sequence);
  return reinterpret_cast<float*>(workspace_ + offset) + split * split_stride(width) +
         (first + row) * width;
}

std::int64_t FlashCall::length_q(std::int64_t sequence) const {
  if (!problem_.varlen()) return problem_.seqlen_q;
  return offset_of(tensors_.cu_seqlens_q, sequence + 1) -
         offset_of(tensors_.cu_seqlens_q, sequence);
}

std::int64_t FlashCall::length_k(std::int64_t sequence) const {
  if (!problem_.varlen()) return problem_.keys();
  return offset_of(tensors_.cu_seqlens_k, sequence + 1) -
         offset_of(tensors_.cu_seqlens_k, sequence);
}

/// One head's rows of a [batch, seqlen, heads, dim] or [total, heads, dim] tensor.
Rows FlashCall::rows(const TensorView& view, std::int64_t sequence, std::int64_t head,
                     const TensorView& offsets) const {
  if (!view.given()) return {};
  const int row_axis = problem_.varlen() ? 0 : 1;
  // Strides of what has no elements may be anything.
  if (view.elements() == 0) return {static_cast<std::byte*>(view.data), view.strides[row_axis]};
  const std::int64_t first = problem_.varlen() ? offset_of(offsets, sequence) * view.strides[0]
                                               : sequence * view.strides[0];
  const std::int64_t element = first + head * view.strides[row_axis + 1];
  return {
      static_cast<std::byte*>(view.data) + element * static_cast<std::int64_t>(size_of(view.dtype)),
      view.strides[row_axis]};
}

Rows FlashCall::bias_rows(std::int64_t sequence, std::int64_t head) const {
  const TensorView& bias = tensors_.bias;
  if (bias.elements() == 0) return {static_cast<std::byte*>(bias.data), 0};
  const std::int64_t element = (problem_.bias->per_batch ? sequence * bias.strides[0] : 0) +
                               (problem_.bias->per_head ? head * bias.strides[1] : 0);
  return {
      static_cast<std::byte*>(bias.data) + element * static_cast<std::int64_t>(size_of(bias.dtype)),
      problem_.bias->per_query ? bias.strides[2] : 0};
}

/// One head's rows of a [batch, heads, seqlen_q] or [heads, total_q] statistic.
float* FlashCall::statistic(float* base, std::int64_t sequence, std::int64_t head,
                            std::int64_t sequence_stride, std::int64_t head_stride) const {
  if (base == nullptr) return nullptr;
  const std::int64_t first =
      problem_.varlen() ? offset_of(tensors_.cu_seqlens_q, sequence) : sequence * sequence_stride;
  return base + first + head * head_stride;
}

HeadTask FlashCall::task(std::int64_t sequence, std::int64_t head) const {
  const std::int64_t key_head = head / problem_.group();
  const Window window = problem_.effective_window();
  HeadTask task;
  task.dtype = problem_.dtype;
  task.q = rows(tensors_.q, sequence, head, tensors_.cu_seqlens_q);
  task.k = rows(tensors_.k, sequence, key_head, tensors_.cu_seqlens_k);
  task.v = rows(tensors_.v, sequence, key_head, tensors_.cu_seqlens_k);
  task.out = rows(tensors_.out, sequence, head, tensors_.cu_seqlens_q);
  task.lse = statistic(static_cast<float*>(tensors_.lse.data), sequence, head,
                       tensors_.lse.strides[0], tensors_.lse.strides[problem_.varlen() ? 0 : 1]);
  task.len_q = length_q(sequence);
  task.len_k = length_k(sequence);
  task.dim = problem_.dim;
  task.dim_v = problem_.value_dim();
  task.scale = static_cast<float>(problem_.softmax_scale());
  task.window_left = window.left;
  task.window_right = window.right;
  task.softcap = static_cast<float>(problem_.softcap);
  if (problem_.alibi) {
    const TensorView& slopes = tensors_.alibi_slopes;
    task.has_alibi = true;
    task.alibi_slope = static_cast<const float*>(
        slopes.data)[slopes.rank == 2 ? sequence * slopes.strides[0] + head * slopes.strides[1]
                                      : head * slopes.strides[0]];
  }
  if (problem_.sinks) {
    task.has_sink = true;
    task.sink = static_cast<const float*>(tensors_.sinks.data)[head * tensors_.sinks.strides[0]];
  }
  if (problem_.bias) {
    task.bias = bias_rows(sequence, head);
    task.bias_per_query = problem_.bias->per_query;
  }
  if (problem_.dropout > 0) set_dropout(task, sequence, head);
  if (problem_.pass == Pass::backward) set_gradients(task, sequence, head);
  return task;
}

void FlashCall::set_dropout(HeadTask& task, std::int64_t sequence, std::int64_t head) const {
  task.has_dropout = true;
  task.dropout_threshold = dropout_threshold(problem_.dropout);
  task.dropout_scale = static_cast<float>(1.0 / (1.0 - problem_.dropout));
  task.seed[0] = static_cast<std::uint32_t>(problem_.dropout_seed);
  task.seed[1] = static_cast<std::uint32_t>(problem_.dropout_seed >> 32);
  task.head = static_cast<std::uint32_t>(head);
  task.sequence = static_cast<std::uint32_t>(sequence);
}

void FlashCall::set_gradients(HeadTask& task, std::int64_t sequence, std::int64_t head) const {
  const std::int64_t key_head = head / problem_.group();
  // Statistics lie dense: [batch, heads, seqlen_q], or [heads, total_q] with variable lengths.
  const std::int64_t rows_q = problem_.varlen() ? problem_.total_q() : problem_.seqlen_q;
  auto* statistics = reinterpret_cast<float*>(workspace_ + flash_.statistics_offset);
  task.delta = statistic(statistics, sequence, head, problem_.heads * rows_q, rows_q);
  task.correction = task.delta + problem_.heads * problem_.total_q();
  task.dout = rows(tensors_.dout, sequence, head, tensors_.cu_seqlens_q);
  task.dq = rows(tensors_.dq, sequence, head, tensors_.cu_seqlens_q);
  task.dk = rows(tensors_.dk, sequence, key_head, tensors_.cu_seqlens_k);
  task.dv = rows(tensors_.dv, sequence, key_head, tensors_.cu_seqlens_k);
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Flash>());
}

}  // namespace strobe::cpu
