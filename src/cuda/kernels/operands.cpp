#include "cuda/kernels/operands.h"

#include <algorithm>

#include "device/tile_pitch.cuh"

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

bool rows_aligned(const TensorView& view) {
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  if (reinterpret_cast<std::uintptr_t>(view.data) % kChunkBytes != 0) return false;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (view.shape[i] > 1 && view.strides[i] * element % kChunkBytes != 0) return false;
  }
  return true;
}

long long window_limit(std::int64_t limit) {
  return std::clamp<std::int64_t>(limit, 0, std::int64_t{1} << 32);
}

PaddedOperands::Copy PaddedOperands::plan(bool of_keys, std::int64_t dim,
                                          WorkspacePlan& workspace) {
  const auto element = static_cast<std::int64_t>(size_of(problem_.dtype));
  if (is_whole_chunks(static_cast<int>(dim), static_cast<int>(element))) return {};
  if (!padder_) padder_ = std::make_unique<pad_rows::RowPadder>(device_);
  const std::int64_t rows = of_keys ? problem_.total_k() : problem_.total_q();
  const std::int64_t heads = of_keys ? problem_.kv_heads() : problem_.heads;
  const std::int64_t chunk = kChunkBytes / element;
  const std::int64_t padded = (dim + chunk - 1) / chunk * chunk;
  return {.dim = padded, .offset = workspace.take(rows * heads * padded * element)};
}

TensorView PaddedOperands::pad(const TensorView& view, const Copy& copy, std::byte* workspace,
                               abi::Stream stream) const {
  if (copy.dim == 0) return view;
  TensorView padded = view;
  padded.data = workspace + copy.offset;
  std::int64_t extent = copy.dim;
  for (int axis = view.rank - 2; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    padded.strides[i] = extent;
    extent *= view.shape[i];
  }
  padder_->pad(view, padded.data, copy.dim, stream);
  return padded;
}

}  // namespace strobe::cuda
