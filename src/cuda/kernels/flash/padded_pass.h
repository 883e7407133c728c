#pragma once

#include <memory>
#include <mutex>

#include "core/text.h"
#include "cuda/kernels/flash/padding.h"

namespace strobe::cuda::flash {

/// A pass by `Kernels` that take heads only if they begin at chunks of 16 bytes, for any.
template <class Kernels>
class PaddedPass {
 public:
  PaddedPass(const driver::Device& device, const Problem& problem, const PlanOptions& options)
      : device_(device),
        problem_(problem),
        options_(options),
        padding_(device, problem_, workspace_),
        kernels_workspace_(workspace_.take(
            static_cast<std::int64_t>(Kernels::workspace_bytes(device, problem, options)))) {}

  /// Compiled when they are first asked for.
  const Kernels& kernels() const {
    std::call_once(
        once_, [this] { kernels_ = std::make_unique<const Kernels>(device_, problem_, options_); });
    return *kernels_;
  }
  TuningRecord tuning() const {
    TuningRecord record = kernels().tuning();
    if (Padding::has_copies(problem_))
      record.emplace_back("padded", concat(Padding::head_stride(problem_.dim, problem_.dtype)));
    return record;
  }
  std::size_t workspace_bytes() const { return workspace_.bytes(); }
  /// Of which this much is for copies.
  std::size_t copy_bytes() const { return kernels_workspace_; }

  /// False if the kernels cannot take tensors that lie so, which no copies are.
  bool run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
    std::byte* const begin = aligned_workspace(workspace);
    const Tensors places = padding_.places(tensors, begin);
    if (!kernels().takes(places)) return false;
    padding_.copy(tensors, begin, stream);
    kernels().run(places, begin + kernels_workspace_, stream);
    return true;
  }

 private:
  const driver::Device& device_;
  Problem problem_;
  PlanOptions options_;
  WorkspacePlan workspace_{};
  Padding padding_;
  std::size_t kernels_workspace_;
  mutable std::once_flag once_{};
  mutable std::unique_ptr<const Kernels> kernels_{};
};

}  // namespace strobe::cuda::flash
