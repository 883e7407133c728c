#include "cuda/kernels/hopper_operands.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "cuda/driver/tensor_map.h"
#include "cuda/kernels/operands.h"

namespace strobe::cuda {

namespace {

/// All but the last `inner` axes are neither broadcast, nor backwards, nor empty.
bool axes_have_boxes(const TensorView& view, int inner) {
  constexpr std::int64_t kMaxStrideBytes = std::int64_t{1} << 40;
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  for (int axis = 0; axis + inner < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t stride = view.strides[i] * element;
    if (view.shape[i] == 0) return false;
    if (view.shape[i] > 1 && (stride <= 0 || stride >= kMaxStrideBytes)) return false;
  }
  return true;
}

std::size_t head_axis(const TensorView& view) {
  return static_cast<std::size_t>(view.rank - 2);
}

std::int64_t head_stride(const TensorView& view) {
  return view.shape[head_axis(view)] > 1 ? view.strides[head_axis(view)] : 0;
}

/// The tensor from the multiple of 16 bytes before it on, with all heads as columns of one.
TensorView as_one_head(const TensorView& view) {
  const HeadPlace place = head_place(view);
  TensorView rows = view;
  rows.data = static_cast<std::byte*>(view.data) -
              place.first * static_cast<std::int64_t>(size_of(view.dtype));
  rows.shape[head_axis(view) + 1] += place.first + (view.shape[head_axis(view)] - 1) * place.stride;
  rows.shape[head_axis(view)] = 1;
  return rows;
}

}  // namespace

bool has_boxes(const TensorView& view) {
  return axes_have_boxes(view, 1) && rows_aligned(view);
}

bool has_shifted_heads(const Problem& problem) {
  const auto shifted = [](std::int64_t dim) { return dim % kChunkElements != 0; };
  const auto whole = [&](std::int64_t dim) { return problem.heads * dim % kChunkElements == 0; };
  return (shifted(problem.dim) || shifted(problem.value_dim())) && whole(problem.dim) &&
         whole(problem.value_dim()) && problem.group() == 1;
}

HeadPlace head_place(const TensorView& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data) / size_of(view.dtype);
  return {static_cast<int>(address % static_cast<std::uintptr_t>(kChunkElements)),
          static_cast<int>(head_stride(view))};
}

bool has_rows_of_heads(const TensorView& view, int columns) {
  constexpr std::int64_t kMostColumns = std::int64_t{1} << 30;
  const std::int64_t stride = head_stride(view);
  const std::int64_t heads = view.shape[head_axis(view)];
  if (!axes_have_boxes(view, 2) || heads == 0 || stride < 0 || stride >= kMostColumns / heads)
    return false;
  // The most that can lie before a head in its chunk.
  const std::int64_t first = head_place(view).first;
  const std::int64_t step = std::gcd(std::gcd(stride, first), kChunkElements);
  const std::int64_t dim = view.shape[head_axis(view) + 1];
  return dim + kChunkElements - step <= columns && rows_aligned(as_one_head(view));
}

bool heads_agree(const TensorView& one, const TensorView& other) {
  const HeadPlace a = head_place(one);
  const HeadPlace b = head_place(other);
  return a.first == b.first && (a.stride - b.stride) % kChunkElements == 0;
}

abi::TensorMap row_map(const TensorView& view, int box_rows) {
  return tensor_map(as_one_head(view), box_rows);
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
