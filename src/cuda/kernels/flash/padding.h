#pragma once

#include "cuda/kernels/operands.h"

namespace strobe::cuda::flash {

/// For kernels that read rows only from chunks of 16 bytes on: copies of what they read, if heads
/// are no whole chunks.
class Padding {
 public:
  /// Takes room for the copies. The problem must be there as long as this is.
  Padding(const driver::Device& device, const Problem& problem, WorkspacePlan& workspace);

  /// Whether there are any.
  static bool has_copies(const Problem& problem);

  /// Elements from one head to the next of a copy.
  static std::int64_t head_stride(std::int64_t dim, DType dtype);

  /// Where the copies are, or else the tensors. `workspace` as offsets count it.
  Tensors places(const Tensors& tensors, std::byte* workspace) const;

  void copy(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const;

 private:
  /// A tensor and its copy.
  struct Member {
    TensorView Tensors::*tensor;
    PaddedOperands::Copy copy;
  };

  PaddedOperands operands_;
  std::vector<Member> members_{};
};

}  // namespace strobe::cuda::flash
