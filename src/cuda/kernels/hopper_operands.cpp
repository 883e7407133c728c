#include "cuda/kernels/hopper_operands.h"

#include "cuda/driver/tensor_map.h"
#include "cuda/kernels/operands.h"

namespace strobe::cuda {

bool is_for_hopper(const Problem& problem, const jit::Architecture& architecture) {
  constexpr std::int64_t kMaxDim = 256;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const Window window = problem.window;
  const bool half = problem.dtype == DType::bf16 || problem.dtype == DType::fp16;
  const bool plain = window.left < 0 && window.right < 0 && problem.softcap == 0 &&
                     !problem.alibi && !problem.sinks && !problem.bias && problem.dropout == 0 &&
                     !problem.varlen() && problem.softmax_scale() > 0;
  const bool some = problem.batch > 0 && problem.seqlen_q > 0 && problem.keys() > 0;
  return architecture.major == 9 && architecture.specific && half && plain && some &&
         problem.dim % 8 == 0 && problem.dim <= kMaxDim && problem.value_dim() == problem.dim &&
         problem.seqlen_q < kMost && problem.keys() < kMost;
}

bool has_boxes(const TensorView& view) {
  constexpr std::int64_t kMaxStrideBytes = std::int64_t{1} << 40;
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t stride = view.strides[i] * element;
    if (view.shape[i] > 1 && (stride <= 0 || stride >= kMaxStrideBytes)) return false;
  }
  return rows_aligned(view);
}

abi::TensorMap tensor_map(const TensorView& view, int box_rows) {
  const auto element = static_cast<std::uint64_t>(size_of(view.dtype));
  const auto size = [&](std::size_t axis) { return static_cast<std::uint64_t>(view.shape[axis]); };
  // The stride of an axis of one is never used, but must be a legal one.
  const auto stride = [&](std::size_t axis) {
    return view.shape[axis] == 1 ? static_cast<std::uint64_t>(kChunkBytes)
                                 : static_cast<std::uint64_t>(view.strides[axis]) * element;
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
