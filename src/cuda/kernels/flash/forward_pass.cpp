#include "cuda/kernels/flash/forward_pass.h"

#include "cuda/kernels/flash/hopper_switch.h"

namespace strobe::cuda::flash {

bool ForwardPass::has_hopper_kernel(const Problem& problem, const jit::Architecture& architecture) {
  return hopper_is_on() && hopper_forward::takes(problem, architecture);
}

ForwardPass::ForwardPass(const driver::Device& device, const Problem& problem,
                         const PlanOptions& options)
    : device_(device), problem_(problem), options_(options) {
  if (!has_hopper_kernel(problem, jit::Architecture::of(device))) {
    portable();
    return;
  }
  hopper_ = std::make_unique<const PaddedPass<hopper_forward::Forward>>(device, problem, options);
  if (hopper_forward::Forward::shifts(problem, options)) {
    hopper_in_place_ =
        std::make_unique<const hopper_forward::Forward>(device, problem, options, true);
  } else {
    hopper_->kernels();
  }
}

const portable_forward::Forward& ForwardPass::portable() const {
  std::call_once(portable_once_, [this] {
    portable_ = std::make_unique<const portable_forward::Forward>(device_, problem_, options_.tf32);
  });
  return *portable_;
}

TuningRecord ForwardPass::tuning() const {
  if (hopper_in_place_) return hopper_in_place_->tuning();
  return hopper_ ? hopper_->tuning() : portable().tuning();
}

std::size_t ForwardPass::workspace_bytes() const {
  // Tensors may come to the portable one all the same. What it copies, the other would copy too,
  // and who copies nothing needs no more than who does.
  return hopper_ ? hopper_->workspace_bytes() : portable().workspace_bytes();
}

void ForwardPass::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  if (hopper_in_place_ && hopper_in_place_->takes(tensors))
    return hopper_in_place_->run(tensors, workspace, stream);
  if (hopper_ && hopper_->run(tensors, workspace, stream)) return;
  portable().run(tensors, workspace, stream);
}

}  // namespace strobe::cuda::flash
