#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/text.h"
#include "cuda/kernels/flash/padding.h"

namespace strobe::cuda::flash {

/// A pass by `Kernels` that take heads as they lie only where that is better than to copy them: for
/// heads that lie anywhere.
template <class Kernels>
class HopperPass {
 public:
  HopperPass(const driver::Device& device, const Problem& problem, const PlanOptions& options)
      : device_(device),
        problem_(problem),
        options_(options),
        padding_(device, problem_, workspace_),
        kernels_workspace_(workspace_.take(
            static_cast<std::int64_t>(Kernels::workspace_bytes(device, problem, options)))) {
    if (Kernels::shifts(problem, options))
      in_place_ = std::make_unique<const Kernels>(device, problem, options, true);
    else
      kernels();
  }

  TuningRecord tuning() const {
    if (in_place_) return in_place_->tuning();
    TuningRecord record = kernels().tuning();
    if (Padding::has_copies(problem_))
      record.emplace_back("padded", concat(Padding::head_stride(problem_.dim, problem_.dtype)));
    return record;
  }
  std::size_t workspace_bytes() const {
    if (!in_place_) return workspace_.bytes();
    return std::max(workspace_.bytes(),
                    Kernels::workspace_bytes(device_, problem_, options_, true));
  }
  /// Of which this much is for copies.
  std::size_t copy_bytes() const { return kernels_workspace_; }

  /// False if the kernels cannot take tensors that lie so, which no copies are.
  bool run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
    if (in_place_ && in_place_->takes(tensors)) {
      in_place_->run(tensors, workspace, stream);
      return true;
    }
    std::byte* const begin = aligned_workspace(workspace);
    const Tensors places = padding_.places(tensors, begin);
    if (!kernels().takes(places)) return false;
    padding_.copy(tensors, begin, stream);
    kernels().run(places, begin + kernels_workspace_, stream);
    return true;
  }

 private:
  /// Those for copies, compiled when they are first asked for.
  const Kernels& kernels() const {
    std::call_once(
        once_, [this] { kernels_ = std::make_unique<const Kernels>(device_, problem_, options_); });
    return *kernels_;
  }

  const driver::Device& device_;
  Problem problem_;
  PlanOptions options_;
  WorkspacePlan workspace_{};
  Padding padding_;
  std::size_t kernels_workspace_;
  std::unique_ptr<const Kernels> in_place_{};
  mutable std::once_flag once_{};
  mutable std::unique_ptr<const Kernels> kernels_{};
};

}  // namespace strobe::cuda::flash
