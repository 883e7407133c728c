#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/loaded_kernel.h"
#include "cuda/kernels/operands.h"
#include "cuda/kernels/portable_forward/config.h"
#include "cuda/kernels/portable_forward/params.cuh"
#include "strobe/implementation.h"

// Flash attention, forward, on every GPU since sm_80.
namespace strobe::cuda::portable_forward {

/// Some for every head dim that is common, and each feature.
std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// What keeps the kernel from the problem on any GPU.
std::vector<std::string> missing(const Problem& problem);

/// The kernel planned for one problem on one device.
class Forward {
 public:
  /// Compiles it, if nobody has before. `tf32` is for fp32.
  Forward(const driver::Device& device, const Problem& problem, bool tf32);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const { return workspace_.bytes(); }

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  /// The kernel as it is compiled for operands that lie aligned, or anywhere.
  struct Variant {
    PortableForwardConfig config{};
    std::shared_ptr<const jit::LoadedKernel> kernel{};
    driver::Function function{};
  };

  Variant load(bool aligned) const;
  const Variant& variant_for(bool aligned) const;
  PortableForwardParams params(const Tensors& tensors, const PortableForwardConfig& config) const;

  const driver::Device& device_;
  Problem problem_;
  PortableForwardFeatures features_;
  WorkspacePlan workspace_{};
  PaddedOperands padded_;
  PaddedOperands::Copy k_{}, v_{};
  Variant aligned_{};
  mutable std::once_flag unaligned_once_{};
  mutable Variant unaligned_{};  ///< made when the first such operands come
};

}  // namespace strobe::cuda::portable_forward
