#include "cuda/kernels/flash/backward_pass.h"

#include <algorithm>

#include "cuda/kernels/flash/hopper_switch.h"

namespace strobe::cuda::flash {

bool BackwardPass::has_hopper_kernel(const Problem& problem,
                                     const jit::Architecture& architecture) {
  return hopper_is_on() && hopper_backward::takes(problem, architecture);
}

BackwardPass::BackwardPass(const driver::Device& device, const Problem& problem,
                           const PlanOptions& options)
    : device_(device), problem_(problem), options_(options) {
  if (has_hopper_kernel(problem, jit::Architecture::of(device)))
    hopper_ =
        std::make_unique<const HopperPass<hopper_backward::Backward>>(device, problem, options);
  else
    portable();
}

const portable_backward::Backward& BackwardPass::portable() const {
  std::call_once(portable_once_, [this] {
    portable_ = std::make_unique<const portable_backward::Backward>(device_, problem_, options_);
  });
  return *portable_;
}

TuningRecord BackwardPass::tuning() const {
  return hopper_ ? hopper_->tuning() : portable().tuning();
}

std::size_t BackwardPass::workspace_bytes() const {
  if (!hopper_) return portable().workspace_bytes();
  // Gradients or a bias may lie as only the portable ones can take them. These copy no more than
  // the others would.
  WorkspacePlan for_portable;
  portable_backward::plan_arrays(problem_, portable_backward::features_of(problem_, options_),
                                 for_portable);
  return std::max(hopper_->workspace_bytes(), hopper_->copy_bytes() + for_portable.bytes());
}

void BackwardPass::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  if (hopper_ && hopper_->run(tensors, workspace, stream)) return;
  portable().run(tensors, workspace, stream);
}

}  // namespace strobe::cuda::flash
