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

/// The main kernel for the variant that the options name, or the usual one. Throws InvalidArgument
/// if there is none of that name.
jit::KernelDescription describe(const Problem& problem, const PlanOptions& options);

/// As Implementation::keep_variant.
void keep_variant(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                  const std::optional<TunedVariant>& tuned);

/// The kernels planned for one problem on one device.
class Backward {
 public:
  /// Compiles them, if nobody has before: for heads that begin at multiples of 16 bytes, or
  /// `shifted` for those that do not.
  Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
           bool shifted = false);

  /// Whether dense tensors have heads that do not, and that is better than to copy them.
  static bool shifts(const Problem& problem, const PlanOptions& options);

  TuningRecord tuning() const;
  static std::size_t workspace_bytes(const driver::Device& device, const Problem& problem,
                                     const PlanOptions& options, bool shifted = false);

  /// Whether the tensors lie so that they can be copied in boxes, and dq in chunks of 16 bytes
  /// where it has whole ones. A bias may serve several sequences or heads.
  bool takes(const Tensors& tensors) const { return takes(config_.features, tensors); }
  static bool takes(const HopperBackwardFeatures& features, const Tensors& tensors);

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

  /// Where the workspace says afterwards whether something was not finite, and computed again.
  std::size_t not_finite_at() const { return arrays_.not_finite; }

 private:
  /// Where arrays are in the workspace, one after the other; the statistics are at its beginning.
  struct Arrays {
    std::size_t turns = 0;
    std::size_t cleared = 0;
    std::size_t added = 0;
    std::size_t not_finite = 0;
    std::size_t sums = 0;
    std::size_t cleared_bytes = 0;  ///< before the main kernel, from the turns on
    std::size_t bytes = 0;

    Arrays(const Problem& problem, const HopperBackwardConfig& config, int heads_of_section);
  };

  Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
           const Chosen<HopperBackwardConfig>& chosen);

  /// As kernels count them.
  int blocks_of_sequence(std::int64_t of_all) const;
  PortableBackwardParams row_params(const Tensors& tensors, void* workspace) const;
  abi::TensorMap map(const TensorView& view, int box_rows) const;
  abi::TensorMap gradient_map(const TensorView& gradient, int dim) const;
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
  int heads_of_section_;       ///< as kernels are told
  Arrays arrays_;
};

}  // namespace strobe::cuda::hopper_backward
