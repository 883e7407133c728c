#pragma once

#include "cuda/baselines/standard/config.h"
#include "cuda/baselines/standard/params.cuh"
#include "cuda/baselines/standard/products.h"
#include "cuda/jit/loaded_kernel.h"
#include "cuda/kernels/pad_rows/pad_rows.h"
#include "strobe/implementation.h"

namespace strobe::cuda::standard {

/// One pass of a problem on one device. Operands are brought into the order [batch, heads, rows,
/// dim], so that the query heads which share a key head are the rows of one matrix, and every
/// product is one call.
class Unfused {
 public:
  /// Compiles the row kernels. `tf32` is for fp32.
  Unfused(const driver::Device& device, const Problem& problem, bool tf32);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, abi::Stream stream) const;

 private:
  /// An operand in the workspace, [batch, heads, rows, pitch].
  struct Arranged {
    std::size_t offset = 0;
    std::int64_t rows = 0;   ///< of a matrix
    std::int64_t pitch = 0;  ///< the dim, with zeros up to a multiple of 16 bytes
  };

  /// One call.
  struct Call {
    const Tensors& tensors;
    std::byte* workspace;
    abi::Stream stream;
    StandardParams params;
    Products::Session products;
  };

  std::int64_t pitch_of(std::int64_t columns) const;
  void forward(const Call& call) const;
  void backward(const Call& call) const;
  /// scores = scale · q kᵀ
  void compute_scores(const Call& call) const;
  void gradients_of_logits(const Call& call) const;

  StandardParams params(const Tensors& tensors, std::byte* workspace) const;
  Matrices matrices(const Call& call, const Arranged& operand) const;
  Matrices score_matrices(const Call& call, std::size_t offset) const;
  void multiply(const Call& call, const Matrices& a, const Matrices& b, const Matrices& to,
                float factor = 1) const;
  void launch_rows(const Call& call, const driver::Function& function) const;
  void bring(const Call& call, const TensorView& from, const Arranged& to) const;
  void bring_back(const Call& call, const Arranged& from, const TensorView& to) const;

  const driver::Device& device_;
  Problem problem_;
  Products products_;
  pad_rows::RowPadder padder_;
  std::shared_ptr<const jit::LoadedKernel> softmax_{}, gradients_{};
  driver::Function softmax_rows_{}, softmax_gradient_rows_{}, softcap_gradient_rows_{};
  driver::Function bias_gradients_{}, sink_gradients_{};

  Arranged q_{}, k_{}, v_{}, out_{}, dout_{}, dq_{}, dk_{}, dv_{};
  std::size_t library_workspace_ = 0;
  std::size_t scores_ = 0, weights_ = 0;  ///< [batch, heads, seqlen_q, seqlen_k with its padding]
  std::size_t row_maxima_ = 0, row_sums_ = 0, sink_rows_ = 0;  ///< fp32 [batch, heads, seqlen_q]
  std::size_t workspace_bytes_ = 0;
};

}  // namespace strobe::cuda::standard
