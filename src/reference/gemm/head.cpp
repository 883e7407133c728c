#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/threads.h"
#include "reference/dropout_row.h"
#include "reference/gemm/gemm.h"

namespace strobe::reference::gemm {
namespace {

/// Whether no value has all bits of the exponent set, as NaN and infinity have.
template <class Word, class Value>
bool all_finite(const Value* values, std::int64_t count, Word exponent) {
  int found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    found |= static_cast<int>((std::bit_cast<Word>(values[i]) & exponent) == exponent);
  }
  return found == 0;
}

float element(const Operand& operand, bool bf16, std::int64_t row, std::int64_t column) {
  if (operand.transposed) std::swap(row, column);
  const std::int64_t at = row * operand.stride + column;
  return bf16 ? bf16_to_float(static_cast<const std::uint16_t*>(operand.data)[at])
              : static_cast<const float*>(operand.data)[at];
}

}  // namespace

std::int64_t GemmRun::key_row(const Sequence& sequence, std::int64_t kv_head) const {
  return kv_head * problem.total_k() + sequence.first_k;
}

bool& GemmRun::finite(const Piece& piece, const Sequence& sequence, std::int64_t kv_head,
                      std::int64_t block) const {
  // No two sequences share a place: each begins at most one before where the last one ends, and
  // the sequence's number adds that one.
  return at<bool>(piece)[kv_head * plan.finite_blocks + sequence.first_k / plan.key_block +
                         sequence.index + block];
}

bool pack_rows(const GemmRun& run, const TensorView& rows, std::int64_t begin, std::int64_t end,
               void* elements) {
  const std::int64_t columns = rows.shape[1];
  bool finite = true;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = (row - begin) * columns;
    if (run.plan.bf16) {
      auto* packed = static_cast<std::uint16_t*>(elements) + first;
      std::memcpy(packed, row_data(rows, row), static_cast<std::size_t>(columns) * sizeof *packed);
      finite = all_finite<std::uint16_t>(packed, columns, 0x7F80U) && finite;
    } else {
      auto* packed = static_cast<float*>(elements) + first;
      widen(row_data(rows, row), columns, rows.dtype, packed);
      finite = all_finite<std::uint32_t>(packed, columns, 0x7F800000U) && finite;
    }
  }
  return finite;
}

void pack_keys(const GemmRun& run) {
  const Problem& problem = run.problem;
  const GemmPlan& plan = run.plan;
  const std::int64_t blocks = (problem.keys() + plan.key_block - 1) / plan.key_block;
  parallel_for("pack keys", problem.batch * problem.kv_heads() * blocks, plan.threads,
               [&](std::int64_t item, int) {
                 const std::int64_t block = item % blocks;
                 const std::int64_t head = item / blocks % problem.kv_heads();
                 const Sequence sequence =
                     sequence_at(problem, run.tensors, item / blocks / problem.kv_heads());
                 const std::int64_t begin = block * plan.key_block;
                 const std::int64_t end = std::min(begin + plan.key_block, sequence.length_k);
                 if (begin >= end) return;
                 const std::int64_t row = run.key_row(sequence, head) + begin;
                 run.finite(plan.finite_k, sequence, head, block) =
                     pack_rows(run, key_rows(run.tensors.k, sequence, head), begin, end,
                               run.element_row(plan.k, row, problem.dim));
                 run.finite(plan.finite_v, sequence, head, block) =
                     pack_rows(run, key_rows(run.tensors.v, sequence, head), begin, end,
                               run.element_row(plan.v, row, problem.value_dim()));
               });
}

void compute(const GemmRun& run, Product product, bool finite) {
  product.bf16 = run.plan.bf16;
  if (finite) return run.plan.library->multiply(product);
  for (std::int64_t i = 0; i < product.rows; ++i) {
    float* out = product.out + i * product.out_stride;
    if (!product.accumulate) std::fill_n(out, product.columns, 0.0F);
    for (std::int64_t j = 0; j < product.depth; ++j) {
      const float weight = element(product.left, product.bf16, i, j);
      if (weight == 0) continue;
      for (std::int64_t c = 0; c < product.columns; ++c) {
        out[c] += weight * element(product.right, product.bf16, j, c);
      }
    }
  }
}

Head::Head(const GemmRun& call, const Sequence& which, std::int64_t head, int thread_index)
    : run(call),
      sequence(which),
      index(head),
      kv_head(head / call.problem.group()),
      thread(thread_index),
      sink(call.problem.sinks
               ? load_element(call.tensors.sinks.data, head * call.tensors.sinks.strides[0],
                              call.tensors.sinks.dtype)
               : -kInfinity),
      bias_(call.problem.bias ? bias_rows(call.tensors.bias, which, head) : TensorView{}),
      slope_(call.problem.alibi ? alibi_slope(call.tensors.alibi_slopes, which.index, head) : 0) {}

KeyRange Head::visible(std::int64_t begin, std::int64_t end) const {
  const std::int64_t block = run.plan.key_block;
  return {visible(begin).begin / block * block, visible(end - 1).end};
}

Head::Logits Head::logits(std::int64_t query, KeyRange keys, float* scores, float* slopes) const {
  const Problem& problem = run.problem;
  const RowKernels& kernels = *run.plan.kernels;
  const std::int64_t count = keys.size();
  const float largest = kernels.scale(scores, count, static_cast<float>(problem.softmax_scale()));
  if (problem.softcap == 0 && !problem.alibi && !problem.bias) return {largest, count > 0};

  if (problem.softcap != 0) {
    const auto cap = static_cast<float>(problem.softcap);
    for (std::int64_t n = 0; n < count; ++n) {
      const float tanh = std::tanh(scores[n] / cap);
      scores[n] = cap * tanh;
      if (slopes != nullptr) slopes[n] = 1 - tanh * tanh;
    }
  }
  if (problem.alibi) {
    const std::int64_t position = query + sequence.length_k - sequence.length_q - keys.begin;
    for (std::int64_t n = 0; n < count; ++n) {
      scores[n] -= slope_ * static_cast<float>(std::abs(position - n));
    }
  }
  bool any = count > 0;
  if (problem.bias) {
    float* bias = run.at<float>(run.plan.row, thread);
    const auto* row = static_cast<const std::byte*>(row_data(bias_, query));
    widen(row + keys.begin * static_cast<std::int64_t>(size_of(bias_.dtype)), count, bias_.dtype,
          bias);
    any = false;
    for (std::int64_t n = 0; n < count; ++n) {
      const bool hidden = bias[n] == -kInfinity;
      scores[n] = hidden ? -kInfinity : scores[n] + bias[n];
      any = any || !hidden;
    }
  }
  return {kernels.scale(scores, count, 1), any};
}

void Head::draw_dropout(std::int64_t query, KeyRange keys, float* keep) const {
  DropoutRow row(run.problem, sequence.index, index, query);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    keep[key - keys.begin] = row.factor(key);
  }
}

}  // namespace strobe::reference::gemm
