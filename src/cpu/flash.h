#pragma once

#include <cstdint>

#include "cpu/head_task.h"
#include "strobe/implementation.h"

namespace strobe::cpu {

/// Where the pieces of a call's workspace lie, and which kernels work in them.
struct FlashPlan {
  const IsaKernels* kernels = nullptr;
  int threads = 1;
  std::int64_t scratch_bytes = 0;      // per thread
  std::int64_t statistics_offset = 0;  // fp32 [2, heads, total_q]: delta, correction; backward only
  std::int64_t bias_offset = 0;        // fp32 [threads][kQueryBlock, kKeyBlock], backward only
};

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

  std::int64_t length_q(std::int64_t sequence) const;
  std::int64_t length_k(std::int64_t sequence) const;

  HeadTask task(std::int64_t sequence, std::int64_t head) const;

 private:
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
