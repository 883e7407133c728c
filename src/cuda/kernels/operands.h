#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/kernels/configuration.h"
#include "cuda/kernels/pad_rows/pad_rows.h"
#include "cuda/workspace.h"
#include "device/row_strides.cuh"
#include "strobe/dropout.h"
#include "strobe/implementation.h"
#include "strobe/problem.h"
#include "strobe/tensor.h"

// Tensors as kernels take them.
namespace strobe::cuda {

/// Strides of [sequence, row, head, ...], or of packed sequences [row, head, ...].
RowStrides row_strides(const TensorView& view, bool packed);
/// Of [sequence, head, row], or [head, row].
RowStrides lse_strides(const TensorView& view, bool packed);
/// Of [sequence, head, row, key], 0 where an axis is broadcast.
RowStrides bias_strides(const TensorView& view);

/// Behind the element of a tensor that lies last in memory.
std::byte* end_of(const TensorView& view);

/// Whether every row begins at a multiple of 16 bytes.
bool rows_aligned(const TensorView& view);

/// A limit of a window as kernels take it: none is 0, and none is wider than any two sequences that
/// a kernel takes whose limits are of that type.
template <class Limit>
Limit window_limit(std::int64_t limit) {
  constexpr int kMostBits = sizeof(Limit) > 4 ? 32 : 30;
  return static_cast<Limit>(std::clamp<std::int64_t>(limit, 0, std::int64_t{1} << kMostBits));
}

/// What every kernel is told of a problem, under the names that all their parameters have for it.
template <class Params>
void set_problem(Params& params, const Problem& problem) {
  const Window window = problem.effective_window();
  params.window_left = window_limit<decltype(params.window_left)>(window.left);
  params.window_right = window_limit<decltype(params.window_right)>(window.right);
  params.sequences = static_cast<int>(problem.batch);
  params.heads = static_cast<int>(problem.heads);
  params.seqlen_q = static_cast<int>(problem.seqlen_q);
  params.seqlen_k = static_cast<int>(problem.keys());
  params.softcap = static_cast<float>(problem.softcap);
}

/// Likewise of its dropout.
template <class Params>
void set_dropout(Params& params, const Problem& problem) {
  params.dropout_scale = static_cast<float>(1 / (1 - problem.dropout));
  params.dropout_threshold = dropout_threshold(problem.dropout);
  params.dropout_seed[0] = static_cast<unsigned>(problem.dropout_seed);
  params.dropout_seed[1] = static_cast<unsigned>(problem.dropout_seed >> 32);
}

/// Likewise of the operands of both passes.
template <class Params>
void set_operands(Params& params, const Tensors& tensors, bool packed) {
  const auto floats = [](const TensorView& view) { return static_cast<float*>(view.data); };
  const auto ints = [](const TensorView& view) { return static_cast<const int*>(view.data); };
  params.q = tensors.q.data;
  params.k = tensors.k.data;
  params.v = tensors.v.data;
  params.out = tensors.out.data;
  params.lse = floats(tensors.lse);
  params.sinks = floats(tensors.sinks);
  params.alibi_slopes = floats(tensors.alibi_slopes);
  params.cu_seqlens_q = ints(tensors.cu_seqlens_q);
  params.cu_seqlens_k = ints(tensors.cu_seqlens_k);
  params.q_strides = row_strides(tensors.q, packed);
  params.k_strides = row_strides(tensors.k, packed);
  params.v_strides = row_strides(tensors.v, packed);
  params.out_strides = row_strides(tensors.out, packed);
  if (tensors.lse.given()) params.lse_strides = lse_strides(tensors.lse, packed);
  if (tensors.alibi_slopes.rank == 2)
    params.alibi_sequence_stride = tensors.alibi_slopes.strides[0];
}

/// A dim as rows of whole chunks have it.
std::int64_t padded_dim(std::int64_t dim, DType dtype);

/// Copies, in the workspace, of operands whose rows are not whole chunks of 16 bytes, with zeros
/// behind each row.
class PaddedOperands {
 public:
  explicit PaddedOperands(const driver::Device& device, const Problem& problem)
      : device_(device), problem_(problem) {}

  struct Copy {
    std::int64_t dim = 0;  ///< with the zeros; 0 if the operand is taken as it lies
    std::size_t offset = 0;
  };

  /// An operand with a row for each query, or each key. Takes room for its copy, if it needs one.
  Copy plan(bool of_keys, std::int64_t dim, WorkspacePlan& workspace);
  /// Takes room for a copy of this dim, a multiple of 16 bytes.
  Copy plan_copy(bool of_keys, std::int64_t padded, WorkspacePlan& workspace);

  /// The operand, or its copy, which is made on the stream; `workspace` as offsets count it.
  TensorView pad(const TensorView& view, const Copy& copy, std::byte* workspace,
                 abi::Stream stream) const;

  /// Where `pad` leaves what it gives.
  static TensorView room(const TensorView& view, const Copy& copy, std::byte* workspace);

 private:
  const driver::Device& device_;
  const Problem& problem_;
  std::unique_ptr<pad_rows::RowPadder> padder_{};
};

}  // namespace strobe::cuda
