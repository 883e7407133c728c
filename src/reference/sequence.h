#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/implementation.h"

namespace strobe::reference {

/// One sequence of the batch: its lengths, and its first row among the rows of the whole batch.
struct Sequence {
  std::int64_t index = 0;
  std::int64_t first_q = 0;
  std::int64_t first_k = 0;
  std::int64_t length_q = 0;
  std::int64_t length_k = 0;
};

/// Lengths come from cu_seqlens where the problem has variable lengths, since a plan serves
/// other lengths than those it was made for.
Sequence sequence_at(const Problem& problem, const Tensors& tensors, std::int64_t index);

/// One head of one sequence of a [batch, seqlen, heads, dim] or [total, heads, dim] tensor, as
/// [length, dim].
TensorView query_rows(const TensorView& tensor, const Sequence& sequence, std::int64_t head);
TensorView key_rows(const TensorView& tensor, const Sequence& sequence, std::int64_t head);

/// The same of the LSE, [batch, heads, seqlen_q] or [heads, total_q], as [length_q].
TensorView lse_rows(const TensorView& lse, const Sequence& sequence, std::int64_t head);

/// The same of a bias [batch|1, heads|1, seqlen_q|1, seqlen_k], as [seqlen_q|1, seqlen_k]; one row
/// that serves every query has stride 0.
TensorView bias_rows(const TensorView& bias, const Sequence& sequence, std::int64_t head);

/// The slope of slopes [heads] or [batch, heads].
float alibi_slope(const TensorView& slopes, std::int64_t sequence, std::int64_t head);

/// Where row `row` of a [rows, columns] view begins, in elements and in memory.
inline std::int64_t row_offset(const TensorView& rows, std::int64_t row) {
  return row * rows.strides[0];
}
inline void* row_data(const TensorView& rows, std::int64_t row) {
  return static_cast<std::byte*>(rows.data) +
         row_offset(rows, row) * static_cast<std::int64_t>(size_of(rows.dtype));
}

/// What keeps an implementation that does every feature in fp32, fp16 and bf16 from a problem.
Support floating_point_only(const Problem& problem);

}  // namespace strobe::reference
