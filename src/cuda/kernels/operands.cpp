#include "cuda/kernels/operands.h"

#include <algorithm>

namespace strobe::cuda {

RowStrides row_strides(const TensorView& view, bool packed) {
  if (packed) return {0, view.strides[0], view.strides[1]};
  return {view.strides[0], view.strides[1], view.strides[2]};
}

RowStrides lse_strides(const TensorView& view, bool packed) {
  if (packed) return {0, view.strides[1], view.strides[0]};
  return {view.strides[0], view.strides[2], view.strides[1]};
}

RowStrides bias_strides(const TensorView& view) {
  const auto stride = [&](std::size_t axis) {
    return view.shape[axis] == 1 ? 0 : view.strides[axis];
  };
  return {stride(0), stride(2), stride(1)};
}

std::byte* end_of(const TensorView& view) {
  std::int64_t last = 0;
  for (int axis = 0; axis < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (view.shape[i] == 0) return static_cast<std::byte*>(view.data);
    last += (view.shape[i] - 1) * std::max<std::int64_t>(view.strides[i], 0);
  }
  return static_cast<std::byte*>(view.data) +
         (last + 1) * static_cast<std::int64_t>(size_of(view.dtype));
}

bool rows_aligned(const TensorView& view) {
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  if (reinterpret_cast<std::uintptr_t>(view.data) % kChunkBytes != 0) return false;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (view.shape[i] > 1 && view.strides[i] * element % kChunkBytes != 0) return false;
  }
  return true;
}

std::int64_t padded_dim(std::int64_t dim, DType dtype) {
  const std::int64_t chunk = kChunkBytes / static_cast<std::int64_t>(size_of(dtype));
  return (dim + chunk - 1) / chunk * chunk;
}

PaddedOperands::Copy PaddedOperands::plan(bool of_keys, std::int64_t dim,
                                          WorkspacePlan& workspace) {
  const std::int64_t padded = padded_dim(dim, problem_.dtype);
  return padded == dim ? Copy{} : plan_copy(of_keys, padded, workspace);
}

PaddedOperands::Copy PaddedOperands::plan_copy(bool of_keys, std::int64_t padded,
                                               WorkspacePlan& workspace) {
  if (!padder_) padder_ = std::make_unique<pad_rows::RowPadder>(device_);
  const std::int64_t rows = of_keys ? problem_.total_k() : problem_.total_q();
  const std::int64_t heads = of_keys ? problem_.kv_heads() : problem_.heads;
  const auto element = static_cast<std::int64_t>(size_of(problem_.dtype));
  return {.dim = padded, .offset = workspace.take(rows * heads * padded * element)};
}

TensorView PaddedOperands::room(const TensorView& view, const Copy& copy, std::byte* workspace) {
  if (copy.dim == 0) return view;
  TensorView padded = view;
  padded.data = workspace + copy.offset;
  std::int64_t extent = copy.dim;
  for (int axis = view.rank - 2; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    padded.strides[i] = extent;
    extent *= view.shape[i];
  }
  return padded;
}

TensorView PaddedOperands::pad(const TensorView& view, const Copy& copy, std::byte* workspace,
                               abi::Stream stream) const {
  if (copy.dim > 0) padder_->pad(view, workspace + copy.offset, copy.dim, stream);
  return room(view, copy, workspace);
}

}  // namespace strobe::cuda
