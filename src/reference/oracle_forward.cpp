#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/convert.h"
#include "core/text.h"
#include "core/threads.h"
#include "reference/oracle_row.h"
#include "strobe/dropout.h"
#include "strobe/error.h"

namespace strobe::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The mask, stated once more and on its own: Problem::visible is checked against it.
bool mask_allows(const Problem& problem, const Sequence& sequence, std::int64_t query,
                 std::int64_t key) {
  // The last query stands at the last key. Distances cannot overflow, limits added to them could.
  const std::int64_t ahead = key - (query + sequence.length_k - sequence.length_q);
  if (problem.causal && ahead > 0) return false;
  if (problem.window.right >= 0 && ahead > problem.window.right) return false;
  if (problem.window.left >= 0 && -ahead > problem.window.left) return false;
  return true;
}

double bias_at(const Head& head, std::int64_t query, std::int64_t key) {
  if (!head.problem.bias) return 0;
  return load_element(head.bias.data, row_offset(head.bias, query) + key * head.bias.strides[1],
                      head.bias.dtype);
}

double keep_factor(const Head& head, std::int64_t query, std::int64_t key) {
  const Problem& problem = head.problem;
  if (problem.dropout == 0) return 1;
  const bool keeps = dropout_keeps(problem, head.sequence.index, head.index, query, key);
  return keeps ? 1 / (1 - problem.dropout) : 0;
}

// Logits of the keys that the query sees.
std::vector<SeenKey> seen_keys(const Head& head, std::int64_t query) {
  const Problem& problem = head.problem;
  const Sequence& sequence = head.sequence;
  std::vector<SeenKey> keys;
  for (std::int64_t key = 0; key < sequence.length_k; ++key) {
    if (!mask_allows(problem, sequence, query, key)) continue;
    const double bias = bias_at(head, query, key);
    if (bias == -kInfinity) continue;

    SeenKey seen{.key = key, .keep = keep_factor(head, query, key)};
    seen.logit = problem.softmax_scale() * dot(head.q.row(query), head.k.row(key), problem.dim);
    if (problem.softcap != 0) {
      const double t = std::tanh(seen.logit / problem.softcap);
      seen.logit = problem.softcap * t;
      seen.cap_derivative = 1 - t * t;
    }
    if (problem.bias) seen.logit += bias;
    if (problem.alibi) {
      const std::int64_t position = query + sequence.length_k - sequence.length_q;
      seen.logit -= head.slope * static_cast<double>(std::abs(position - key));
    }
    keys.push_back(seen);
  }
  return keys;
}

// NaN if one of them is.
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return a > b ? a : b;
}

std::vector<double> forward_row(const Head& head, const SoftmaxRow& row) {
  std::vector<double> out(head.problem.value_dim(), 0.0);
  for (const SeenKey& seen : row.keys) {
    const float* v = head.v.row(seen.key);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += seen.keep * seen.p * v[c];
  }
  return out;
}

std::int64_t lse_index(const Problem& problem, std::int64_t total_q, const Sequence& sequence,
                       std::int64_t head, std::int64_t query) {
  if (problem.varlen()) return head * total_q + sequence.first_q + query;
  return (sequence.index * problem.heads + head) * problem.seqlen_q + query;
}

void oracle_forward(const Problem& problem, const Tensors& inputs, int threads,
                    OracleResult& result) {
  const std::int64_t total_q = total_rows(inputs.q);
  result.out.assign(total_q * problem.heads * problem.value_dim(), 0.0);
  result.lse.assign(total_q * problem.heads, -kInfinity);

  parallel_for(
      "oracle forward", problem.batch * problem.heads, threads, [&](std::int64_t item, int) {
        const Sequence sequence = sequence_at(problem, inputs, item / problem.heads);
        const Head head(problem, inputs, sequence, item % problem.heads);
        for (std::int64_t query = 0; query < sequence.length_q; ++query) {
          const SoftmaxRow row = softmax_row(head, query);
          const std::vector<double> out = forward_row(head, row);
          const std::int64_t out_row = (sequence.first_q + query) * problem.heads + head.index;
          std::copy(out.begin(), out.end(), result.out.begin() + out_row * problem.value_dim());
          result.lse[lse_index(problem, total_q, sequence, head.index, query)] = row.lse;
        }
      });
}

void check_index(const char* name, std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return;
  throw InvalidArgument(name, concat("is ", index, ", allowed is 0 or more and less than ", size));
}

}  // namespace

Matrix read_matrix(const TensorView& rows) {
  const std::int64_t columns = rows.shape[1];
  Matrix matrix{.columns = columns, .values = std::vector<float>(rows.shape[0] * columns)};
  for (std::int64_t row = 0; row < rows.shape[0]; ++row) {
    const std::int64_t first = row_offset(rows, row);
    float* const values = matrix.values.data() + row * columns;
    if (rows.strides[1] == 1) {
      const auto bytes = first * static_cast<std::int64_t>(size_of(rows.dtype));
      widen(static_cast<const std::byte*>(rows.data) + bytes, columns, rows.dtype, values);
      continue;
    }
    for (std::int64_t column = 0; column < columns; ++column)
      values[column] = load_element(rows.data, first + column * rows.strides[1], rows.dtype);
  }
  return matrix;
}

double dot(const float* a, const float* b, std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

Head::Head(const Problem& what, const Tensors& inputs, const Sequence& which, std::int64_t head)
    : problem(what),
      sequence(which),
      index(head),
      q(read_matrix(query_rows(inputs.q, which, head))),
      k(read_matrix(key_rows(inputs.k, which, head / what.group()))),
      v(read_matrix(key_rows(inputs.v, which, head / what.group()))),
      bias(what.bias ? bias_rows(inputs.bias, which, head) : TensorView{}),
      slope(what.alibi ? alibi_slope(inputs.alibi_slopes, which.index, head) : 0),
      sink(what.sinks
               ? load_element(inputs.sinks.data, head * inputs.sinks.strides[0], inputs.sinks.dtype)
               : -kInfinity) {}

SoftmaxRow softmax_row(const Head& head, std::int64_t query) {
  SoftmaxRow row{.keys = seen_keys(head, query), .lse = -kInfinity};
  double largest = head.sink;
  for (const SeenKey& seen : row.keys) largest = larger(largest, seen.logit);
  if (row.keys.empty() || largest == -kInfinity) return {.lse = -kInfinity};

  double sum = std::exp(head.sink - largest);
  for (const SeenKey& seen : row.keys) sum += std::exp(seen.logit - largest);
  for (SeenKey& seen : row.keys) seen.p = std::exp(seen.logit - largest) / sum;
  row.p_sink = std::exp(head.sink - largest) / sum;
  row.lse = largest + std::log(sum);
  return row;
}

std::int64_t total_rows(const TensorView& tensor) {
  return tensor.rank == 4 ? tensor.shape[0] * tensor.shape[1] : tensor.shape[0];
}

OracleResult compute_oracle(const Problem& problem, const Tensors& inputs, int threads) {
  problem.validate();
  OracleResult result;
  oracle_forward(problem, inputs, threads, result);
  if (problem.pass == Pass::backward) oracle_backward(problem, inputs, threads, result);
  return result;
}

}  // namespace strobe::reference

namespace strobe {

OracleResult oracle(const Problem& problem, const Tensors& inputs) {
  return reference::compute_oracle(problem, inputs, default_threads());
}

OracleRow oracle_row(const Problem& problem, const Tensors& inputs, std::int64_t sequence,
                     std::int64_t head, std::int64_t query) {
  problem.validate();
  reference::check_index("sequence", sequence, problem.batch);
  reference::check_index("head", head, problem.heads);
  const reference::Sequence where = reference::sequence_at(problem, inputs, sequence);
  reference::check_index("query", query, where.length_q);

  const reference::Head inputs_of_head(problem, inputs, where, head);
  const reference::SoftmaxRow row = reference::softmax_row(inputs_of_head, query);
  return {.out = reference::forward_row(inputs_of_head, row), .lse = row.lse};
}

}  // namespace strobe
