#pragma once

#include <memory>
#include <vector>

#include "cuda/kernels/hopper_backward/config.h"
#include "cuda/kernels/hopper_backward/params.cuh"
#include "cuda/kernels/portable_backward/stages.h"
#include "cuda/kernels/variant.h"

// Flash attention, backward, on Hopper: tiles that the copy unit brings to shared memory and that
// are multiplied by whole warpgroups. What comes before is portable_backward's.
namespace strobe::cuda::hopper_backward {

/// Some for every head dim that is common, and each feature.
std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// Whether the kernel takes the problem on such a device.
bool takes(const Problem& problem, const jit::Architecture& architecture);

/// Ways to cut the problem, the usual one first; see Implementation::variants.
std::vector<std::string> variants(const Problem& problem, const PlanOptions& options);

/// As Implementation::keep_variant.
void keep_variant(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                  const std::optional<TunedVariant>& tuned);

/// The kernels planned for one problem on one device.
class Backward {
 public:
  /// Compiles them, if nobody has before.
  Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// Whether the tensors lie so that they can be copied in boxes, and dq in chunks of 16 bytes. A
  /// bias may serve several sequences or heads.
  static bool takes(const Tensors& tensors);

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
           const Chosen<HopperBackwardConfig>& chosen);

  /// As kernels count them.
  int blocks_of_sequence(std::int64_t of_all) const;
  PortableBackwardParams row_params(const Tensors& tensors, void* workspace) const;
  abi::TensorMap bias_map(const Tensors& tensors) const;
  HopperBackwardParams params(const PortableBackwardParams& rows, void* workspace) const;

  Problem problem_;
  HopperBackwardConfig config_;
  bool tuned_;  ///< and not as usual
  portable_backward::Statistics statistics_;
  portable_backward::BiasGradients bias_gradients_{};
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  std::shared_ptr<const jit::LoadedKernel> finish_;
  std::int64_t query_blocks_;  ///< of a head, in all sequences
  std::int64_t key_blocks_;    ///< likewise
  /// Where arrays are in the workspace, one after the other; the statistics are at its beginning.
  std::size_t sums_ = 0, turns_ = 0, not_finite_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace strobe::cuda::hopper_backward
