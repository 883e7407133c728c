#pragma once

#include <memory>
#include <mutex>

#include "cuda/kernels/flash/hopper_pass.h"
#include "cuda/kernels/hopper_forward/hopper_forward.h"
#include "cuda/kernels/portable_forward/portable_forward.h"

namespace strobe::cuda::flash {

/// The forward pass by the kernel that is made for the GPU, if there is one that takes the problem,
/// else by the portable one.
class ForwardPass {
 public:
  ForwardPass(const driver::Device& device, const Problem& problem, const PlanOptions& options);

  /// Whether the kernel for Hopper computes the problem, rather than the portable one.
  static bool has_hopper_kernel(const Problem& problem, const jit::Architecture& architecture);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const;
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  const portable_forward::Forward& portable() const;

  const driver::Device& device_;
  Problem problem_;
  PlanOptions options_;
  std::unique_ptr<const HopperPass<hopper_forward::Forward>> hopper_{};
  mutable std::once_flag portable_once_{};
  /// Beside the other one, made when the first operands come that lie as only it can take them.
  mutable std::unique_ptr<const portable_forward::Forward> portable_{};
};

}  // namespace strobe::cuda::flash
