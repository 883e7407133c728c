#include "reference/sequence.h"

#include "core/text.h"

namespace strobe::reference {
namespace {

// The view that begins at `index` of the first axis and has `length` entries there.
TensorView slice(TensorView view, std::int64_t index, std::int64_t length) {
  view.data = static_cast<std::byte*>(view.data) +
              index * view.strides[0] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape[0] = length;
  return view;
}

TensorView head_rows(const TensorView& tensor, std::int64_t sequence, std::int64_t first,
                     std::int64_t length, std::int64_t head) {
  const TensorView rows =
      tensor.rank == 4 ? tensor.select(0, sequence) : slice(tensor, first, length);
  return rows.select(1, head);
}

}  // namespace

Sequence sequence_at(const Problem& problem, const Tensors& tensors, std::int64_t index) {
  if (!problem.varlen()) {
    return {.index = index,
            .first_q = index * problem.seqlen_q,
            .first_k = index * problem.keys(),
            .length_q = problem.seqlen_q,
            .length_k = problem.keys()};
  }
  const auto offset = [](const TensorView& cu_seqlens, std::int64_t i) -> std::int64_t {
    return static_cast<const std::int32_t*>(cu_seqlens.data)[i * cu_seqlens.strides[0]];
  };
  const std::int64_t first_q = offset(tensors.cu_seqlens_q, index);
  const std::int64_t first_k = offset(tensors.cu_seqlens_k, index);
  return {.index = index,
          .first_q = first_q,
          .first_k = first_k,
          .length_q = offset(tensors.cu_seqlens_q, index + 1) - first_q,
          .length_k = offset(tensors.cu_seqlens_k, index + 1) - first_k};
}

TensorView query_rows(const TensorView& tensor, const Sequence& sequence, std::int64_t head) {
  return head_rows(tensor, sequence.index, sequence.first_q, sequence.length_q, head);
}

TensorView key_rows(const TensorView& tensor, const Sequence& sequence, std::int64_t head) {
  return head_rows(tensor, sequence.index, sequence.first_k, sequence.length_k, head);
}

TensorView lse_rows(const TensorView& lse, const Sequence& sequence, std::int64_t head) {
  if (lse.rank == 3) return lse.select(0, sequence.index).select(0, head);
  return slice(lse.select(0, head), sequence.first_q, sequence.length_q);
}

TensorView bias_rows(const TensorView& bias, const Sequence& sequence, std::int64_t head) {
  TensorView rows = bias.select(0, bias.shape[0] == 1 ? 0 : sequence.index)
                        .select(0, bias.shape[1] == 1 ? 0 : head);
  if (rows.shape[0] == 1) rows.strides[0] = 0;
  return rows;
}

float alibi_slope(const TensorView& slopes, std::int64_t sequence, std::int64_t head) {
  const TensorView row = slopes.rank == 2 ? slopes.select(0, sequence) : slopes;
  return load_element(row.data, head * row.strides[0], row.dtype);
}

Support floating_point_only(const Problem& problem) {
  switch (problem.dtype) {
    case DType::fp32:
    case DType::fp16:
    case DType::bf16:
      return {};
    default:
      return {.missing = {concat("dtype ", name_of(problem.dtype))}};
  }
}

}  // namespace strobe::reference
