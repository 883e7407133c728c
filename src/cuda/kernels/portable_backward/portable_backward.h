#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/kernels/portable_backward/stages.h"

// Flash attention, backward, on every GPU since sm_80.
namespace strobe::cuda::portable_backward {

/// Some for every head dim that is common, and each feature.
std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// What keeps the kernels from the problem on this GPU.
std::vector<std::string> missing(const Problem& problem, const jit::Architecture& architecture);

/// The kernels planned for one problem on one device.
class Backward {
 public:
  /// Compiles them, if nobody has before.
  Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const { return workspace_.bytes(); }

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  /// The kernels as they are compiled for operands that lie aligned, or anywhere.
  struct Variant {
    Statistics statistics{};
    Kernel keys{};
    Kernel queries{};      ///< of dq, if deterministic
    BiasGradients bias{};  ///< with a bias
  };

  /// Whether there are kernels whose thread blocks go through keys and values.
  bool keys_pass_by() const;
  Variant load_all(bool aligned) const;
  const Variant& variant_for(bool aligned) const;
  PortableBackwardParams params(const Tensors& tensors, std::byte* workspace) const;

  void launch_by_keys(const Kernel& kernel, PortableBackwardParams params,
                      abi::Stream stream) const;

  const driver::Device& device_;
  Problem problem_;
  PortableBackwardFeatures features_;
  WorkspacePlan workspace_{};
  PaddedOperands padded_;
  PaddedOperands::Copy q_{}, k_{}, v_{}, dout_{};
  WorkspaceArrays arrays_;
  Variant aligned_{};
  mutable std::once_flag unaligned_once_{};
  mutable Variant unaligned_{};  ///< made when the first such operands come
};

}  // namespace strobe::cuda::portable_backward
