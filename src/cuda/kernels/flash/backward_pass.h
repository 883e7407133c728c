#pragma once

#include <memory>
#include <mutex>

#include "cuda/kernels/flash/hopper_pass.h"
#include "cuda/kernels/hopper_backward/hopper_backward.h"
#include "cuda/kernels/portable_backward/portable_backward.h"

namespace strobe::cuda::flash {

/// The backward pass by the kernels that are made for the GPU, if there are some that take the
/// problem, else by the portable ones.
class BackwardPass {
 public:
  BackwardPass(const driver::Device& device, const Problem& problem, const PlanOptions& options);

  /// Whether the kernel for Hopper computes the problem, rather than the portable one.
  static bool has_hopper_kernel(const Problem& problem, const jit::Architecture& architecture);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const;
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  const portable_backward::Backward& portable() const;

  const driver::Device& device_;
  Problem problem_;
  PlanOptions options_;
  std::unique_ptr<const HopperPass<hopper_backward::Backward>> hopper_{};
  mutable std::once_flag portable_once_{};
  /// Beside the other one, made when the first operands come that lie as only it can take them.
  mutable std::unique_ptr<const portable_backward::Backward> portable_{};
};

}  // namespace strobe::cuda::flash
