#include "cuda/kernels/hopper_operands.h"

#include <utility>

#include "cuda/driver/tensor_map.h"
#include "cuda/kernels/operands.h"

namespace strobe::cuda {

bool has_boxes(const TensorView& view) {
  constexpr std::int64_t kMaxStrideBytes = std::int64_t{1} << 40;
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t stride = view.strides[i] * element;
    if (view.shape[i] == 0) return false;
    if (view.shape[i] > 1 && (stride <= 0 || stride >= kMaxStrideBytes)) return false;
  }
  return rows_aligned(view);
}

TensorView bias_rows(const TensorView& bias) {
  TensorView rows = bias;
  std::swap(rows.shape[1], rows.shape[2]);
  std::swap(rows.strides[1], rows.strides[2]);
  for (const std::size_t axis : {0U, 2U}) {
    if (rows.strides[axis] == 0) rows.shape[axis] = 1;
  }
  return rows;
}

abi::TensorMap tensor_map(const TensorView& view, int box_rows) {
  const auto element = static_cast<std::uint64_t>(size_of(view.dtype));
  const bool packed = view.rank == 3;
  const auto size = [&](std::size_t axis) {
    if (packed && axis == 0) return std::uint64_t{1};
    return static_cast<std::uint64_t>(view.shape[packed ? axis - 1 : axis]);
  };
  // The stride of an axis of one is never used, but must be a legal one.
  const auto stride = [&](std::size_t axis) {
    return size(axis) == 1
               ? static_cast<std::uint64_t>(kChunkBytes)
               : static_cast<std::uint64_t>(view.strides[packed ? axis - 1 : axis]) * element;
  };
  return driver::encode({.type = view.dtype == DType::bf16 ? abi::TensorMapType::bfloat16
                                                           : abi::TensorMapType::float16,
                         .data = view.data,
                         .rank = 4,
                         .sizes = {size(3), size(1), size(2), size(0)},
                         .strides = {stride(1), stride(2), stride(0)},
                         .box = {64, static_cast<std::uint32_t>(box_rows), 1, 1},
                         .swizzle = abi::TensorMapSwizzle::bytes128});
}

}  // namespace strobe::cuda
