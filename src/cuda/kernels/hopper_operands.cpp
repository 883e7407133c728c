#include "cuda/kernels/hopper_operands.h"

#include <cstddef>
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

/// With all heads, which follow each other, as columns of one.
TensorView as_one_head(const TensorView& view) {
  TensorView rows = view;
  rows.shape[head_axis(view) + 1] *= view.shape[head_axis(view)];
  rows.shape[head_axis(view)] = 1;
  return rows;
}

/// The axes of a view [sequence, row, head, dim], or [row, head, dim] of packed sequences, which
/// are one, as the unit is told them.
class Axes {
 public:
  explicit Axes(const TensorView& view) : view_(view), packed_(view.rank == 3) {}

  std::uint64_t size(std::size_t axis) const {
    if (packed_ && axis == 0) return 1;
    return static_cast<std::uint64_t>(view_.shape[packed_ ? axis - 1 : axis]);
  }
  /// In bytes. That of an axis of one is never used, but must be a legal one.
  std::uint64_t stride(std::size_t axis) const {
    return bytes(size(axis) == 1
                     ? kChunkElements
                     : static_cast<std::uint64_t>(view_.strides[packed_ ? axis - 1 : axis]));
  }
  std::uint64_t bytes(std::uint64_t elements) const { return elements * size_of(view_.dtype); }
  abi::TensorMapType type() const {
    return view_.dtype == DType::bf16 ? abi::TensorMapType::bfloat16 : abi::TensorMapType::float16;
  }

 private:
  const TensorView& view_;
  bool packed_;
};

/// Of a box whose lines are as long as what is swizzled.
abi::TensorMapSwizzle swizzle_of(int box_columns) {
  return box_columns == kPanelColumns ? abi::TensorMapSwizzle::bytes128
                                      : abi::TensorMapSwizzle::bytes32;
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

bool has_head_periods(const Problem& problem, int unit) {
  const auto has_period = [&](std::int64_t dim) {
    const int period = head_period(static_cast<int>(dim), unit);
    return period > 0 && problem.heads % period == 0;
  };
  return has_period(problem.dim) && has_period(problem.value_dim());
}

bool is_better_than_copies(std::int64_t keys, int columns) {
  constexpr std::int64_t kManyKeys = 4096;
  constexpr int kManyColumns = 128;
  return keys < kManyKeys || columns > kManyColumns;
}

bool has_dense_heads(const TensorView& view) {
  const std::int64_t heads = view.shape[head_axis(view)];
  const std::int64_t dim = view.shape[head_axis(view) + 1];
  const bool follow_each_other = heads == 1 || view.strides[head_axis(view)] == dim;
  return heads > 0 && follow_each_other && axes_have_boxes(view, 2) &&
         rows_aligned(as_one_head(view)) && heads * dim % kChunkElements == 0;
}

abi::TensorMap row_map(const TensorView& view, int box_rows, int unit, int box_columns) {
  const Axes axes(view);
  const std::uint64_t dim = axes.size(3);
  const auto period = static_cast<std::uint64_t>(head_period(static_cast<int>(dim), unit));
  const std::uint64_t step = dim % static_cast<std::uint64_t>(unit);
  // Of one where there is no period, of all heads.
  const std::uint64_t columns = period == 0 ? axes.size(2) * dim : dim + (period - 1) * step;
  const std::uint64_t in_period = period == 0 ? 1 : period;
  const std::uint64_t periods = period == 0 ? 1 : axes.size(2) / period;
  const auto stride = [&](std::uint64_t size, std::uint64_t elements) {
    return axes.bytes(size == 1 ? kChunkElements : elements);
  };
  return driver::encode({.type = axes.type(),
                         .data = view.data,
                         .rank = 5,
                         .sizes = {columns, axes.size(1), in_period, periods, axes.size(0)},
                         .strides = {axes.stride(1), stride(in_period, dim - step),
                                     stride(periods, period * dim), axes.stride(0)},
                         .box = {static_cast<std::uint32_t>(box_columns),
                                 static_cast<std::uint32_t>(box_rows), 1, 1, 1},
                         .swizzle = swizzle_of(box_columns)});
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

abi::TensorMap tensor_map(const TensorView& view, int box_rows, int box_columns) {
  const Axes axes(view);
  return driver::encode(
      {.type = axes.type(),
       .data = view.data,
       .rank = 4,
       .sizes = {axes.size(3), axes.size(1), axes.size(2), axes.size(0)},
       .strides = {axes.stride(1), axes.stride(2), axes.stride(0)},
       .box = {static_cast<std::uint32_t>(box_columns), static_cast<std::uint32_t>(box_rows), 1, 1},
       .swizzle = swizzle_of(box_columns)});
}

}  // namespace strobe::cuda
