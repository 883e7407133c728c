#pragma once

#include <cstdint>
#include <vector>

#include "reference/sequence.h"
#include "strobe/implementation.h"
#include "strobe/oracle.h"

namespace strobe::reference {

/// Rows of one head. Every dtype fits in float32, so reading loses nothing; the arithmetic on
/// what is read is all float64.
struct Matrix {
  std::int64_t columns = 0;
  std::vector<float> values{};

  const float* row(std::int64_t index) const { return values.data() + index * columns; }
};

Matrix read_matrix(const TensorView& rows);

double dot(const float* a, const float* b, std::int64_t size);

/// The inputs of one query head of one sequence.
struct Head {
  Head(const Problem& what, const Tensors& inputs, const Sequence& which, std::int64_t head);

  const Problem& problem;
  Sequence sequence;
  std::int64_t index;
  Matrix q;         // [length_q, dim]
  Matrix k;         // [length_k, dim], of the key head that serves this query head
  Matrix v;         // [length_k, dim_v]
  TensorView bias;  // [seqlen_q, seqlen_k] if the problem has one
  double slope;     // of ALiBi, else 0
  double sink;      // else -inf, which adds nothing
};

/// A key that a query sees. Keys that it does not see appear nowhere.
struct SeenKey {
  std::int64_t key = 0;
  double logit = 0;           // x_ij of Problem's definition
  double cap_derivative = 1;  // of softcap, at the scaled product
  double keep = 1;            // 1 / (1 - dropout), or 0 where dropped
  double p = 0;
};

/// The softmax of one row. A row that sees nothing has no keys, LSE -inf and a sink of 0.
struct SoftmaxRow {
  std::vector<SeenKey> keys{};
  double p_sink = 0;
  double lse = 0;
};

SoftmaxRow softmax_row(const Head& head, std::int64_t query);

/// The rows of the whole batch, [batch * seqlen] or [total].
std::int64_t total_rows(const TensorView& tensor);

/// Everything that oracle() returns, by at most `threads` threads; no result depends on them.
OracleResult compute_oracle(const Problem& problem, const Tensors& inputs, int threads);

/// Adds dq, dk, dv, dbias and dsinks.
void oracle_backward(const Problem& problem, const Tensors& inputs, int threads,
                     OracleResult& result);

}  // namespace strobe::reference
