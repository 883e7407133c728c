#include "cuda/kernels/flash/forward_pass.h"

#include "cuda/kernels/flash/hopper_switch.h"

namespace strobe::cuda::flash {

bool ForwardPass::has_hopper_kernel(const Problem& problem, const jit::Architecture& architecture) {
  return hopper_is_on() && hopper_forward::takes(problem, architecture);
}

ForwardPass::ForwardPass(const driver::Device& device, const Problem& problem,
                         const PlanOptions& options)
    : device_(device), problem_(problem), options_(options) {
  if (has_hopper_kernel(problem, jit::Architecture::of(device)))
    hopper_ = std::make_unique<const HopperPass<hopper_forward::Forward>>(device, problem, options);
  else
    portable();
}

const portable_forward::Forward& ForwardPass::portable() const {
  std::call_once(portable_once_, [this] {
    portable_ = std::make_unique<const portable_forward::Forward>(device_, problem_, options_.tf32);
  });
  return *portable_;
}

TuningRecord ForwardPass::tuning() const {
  return hopper_ ? hopper_->tuning() : portable().tuning();
}

std::size_t ForwardPass::workspace_bytes() const {
  // Tensors may come to the portable one all the same. What it copies, the other would copy too.
  return hopper_ ? hopper_->workspace_bytes() : portable().workspace_bytes();
}

void ForwardPass::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  if (hopper_ && hopper_->run(tensors, workspace, stream)) return;
  portable().run(tensors, workspace, stream);
}

}  // namespace strobe::cuda::flash
