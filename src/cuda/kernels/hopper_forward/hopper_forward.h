#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/loaded_kernel.h"
#include "cuda/kernels/hopper_forward/config.h"
#include "cuda/kernels/hopper_forward/params.cuh"
#include "cuda/kernels/variant.h"
#include "cuda/workspace.h"
#include "strobe/implementation.h"

// Flash attention, forward, on Hopper: tensors are copied by the unit that Hopper has for it, and
// multiplied by whole warpgroups.
namespace strobe::cuda::hopper_forward {

/// Some for every head dim that is common, and each feature.
std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// Whether the kernel takes the problem on such a device.
bool takes(const Problem& problem, const jit::Architecture& architecture);

/// Ways to cut the problem, the usual one first; see Implementation::variants.
std::vector<std::string> variants(const Problem& problem, const PlanOptions& options,
                                  int multiprocessors);

/// The kernel for the variant that the options name, or the usual one. Throws InvalidArgument if
/// there is none of that name.
jit::KernelDescription describe(const Problem& problem, const PlanOptions& options,
                                int multiprocessors);

/// As Implementation::keep_variant.
void keep_variant(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                  const std::optional<TunedVariant>& tuned);

/// The kernel planned for one problem on one device.
class Forward {
 public:
  /// Compiles it, if nobody has before: for heads that begin at multiples of 16 bytes, or `shifted`
  /// for those that do not.
  Forward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
          bool shifted = false);

  /// Whether dense tensors have heads that do not, and that is better than to copy them.
  static bool shifts(const Problem& problem, const PlanOptions& options);

  TuningRecord tuning() const;
  static std::size_t workspace_bytes(const driver::Device& device, const Problem& problem,
                                     const PlanOptions& options, bool shifted = false);

  /// Whether the unit can copy tensors that lie so: heads begin where it was compiled for, and no
  /// axis is broadcast or runs backwards, but for a bias that serves several sequences or heads.
  bool takes(const Tensors& tensors) const { return takes(config_.features, tensors); }
  static bool takes(const HopperForwardFeatures& features, const Tensors& tensors);

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  /// Where arrays lie in the workspace.
  struct Arrays {
    std::size_t next_tile = 0;
    std::size_t tile_order = 0;
    std::size_t bytes = 0;

    Arrays(const Problem& problem, const HopperForwardConfig& config);
  };

  Forward(const driver::Device& device, const Problem& problem,
          const Chosen<HopperForwardConfig>& chosen);

  /// What device/warpgroup.cuh calls so.
  struct TileMaps {
    abi::TensorMap whole{};
    abi::TensorMap narrow{};
  };

  abi::TensorMap map(const TensorView& view, int box_rows, int box_columns) const;
  TileMaps maps(const TensorView& view, int box_rows, int columns) const;
  TileMaps output_maps(const TensorView& out) const;
  abi::TensorMap bias_map(const Tensors& tensors) const;
  HopperForwardParams params(const Tensors& tensors, std::byte* workspace) const;
  void put_in_order(const HopperForwardParams& of_tiles, SequenceTiles* order,
                    abi::Stream stream) const;

  Problem problem_;
  HopperForwardConfig config_;
  bool tuned_;  ///< and not as usual
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  driver::Function function_;
  std::shared_ptr<const jit::LoadedKernel> order_kernel_{};
  driver::Function order_{};
  Arrays arrays_;
  int blocks_;        ///< of threads
  int paired_tiles_;  ///< see PairedTiles
};

}  // namespace strobe::cuda::hopper_forward
