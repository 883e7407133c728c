#pragma once

#include "cuda/kernels/flash/padding.h"

namespace strobe::cuda::flash {

/// A pass by `Kernels` that take rows of whole chunks alone, for any.
template <class Kernels>
class PaddedPass {
 public:
  template <class... Arguments>
  PaddedPass(const driver::Device& device, const Problem& problem, const Arguments&... arguments)
      : problem_(problem),
        padding_(device, problem_, workspace_),
        kernels_(device, Padding::padded(problem), arguments...),
        kernels_workspace_(workspace_.take(static_cast<std::int64_t>(kernels_.workspace_bytes()))) {
  }

  TuningRecord tuning() const { return kernels_.tuning(); }
  std::size_t workspace_bytes() const { return workspace_.bytes(); }

  /// False if the kernels cannot take tensors that lie so, which no copies are.
  bool run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
    std::byte* const begin = aligned_workspace(workspace);
    const Tensors places = padding_.places(tensors, begin);
    if (!kernels_.takes(places)) return false;
    padding_.copy_in(tensors, begin, stream);
    kernels_.run(places, begin + kernels_workspace_, stream);
    padding_.copy_out(tensors, begin, stream);
    return true;
  }

 private:
  Problem problem_;
  WorkspacePlan workspace_{};
  Padding padding_;
  Kernels kernels_;
  std::size_t kernels_workspace_;
};

}  // namespace strobe::cuda::flash
