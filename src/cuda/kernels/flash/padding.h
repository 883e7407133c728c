#pragma once

#include "cuda/kernels/operands.h"

namespace strobe::cuda::flash {

/// For kernels that take rows of whole chunks of 16 bytes alone: what they compute of a problem
/// that has others, and copies of its tensors for that. Where all rows are whole chunks there are
/// none.
class Padding {
 public:
  /// Takes room for the copies. The problem must be there as long as this is.
  Padding(const driver::Device& device, const Problem& problem, WorkspacePlan& workspace);

  /// The problem with dims of whole chunks, and the scale that it has without.
  static Problem padded(const Problem& problem);

  /// Where the copies are, or else the tensors. `workspace` as offsets count it.
  Tensors places(const Tensors& tensors, std::byte* workspace) const;

  /// Copies what is read.
  void copy_in(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const;
  /// Brings what was written to where it belongs.
  void copy_out(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const;

 private:
  /// A tensor and its copy.
  struct Member {
    TensorView Tensors::*tensor;
    PaddedOperands::Copy copy;
  };

  PaddedOperands operands_;
  std::vector<Member> read_{};
  std::vector<Member> written_{};
};

}  // namespace strobe::cuda::flash
