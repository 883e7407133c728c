#include "cuda/baselines/cudnn/attention_graph.h"

#include <limits>

namespace strobe::cuda::cudnn {
namespace {

using abi::DataType;
using abi::PointwiseMode;
using abi::ReductionOperator;

/// A tensor [batch, rows, heads, dim] whose heads lie in rows of `heads_in_row`.
Axes row_major(std::int64_t rows, std::int64_t heads_in_row, std::int64_t dim) {
  return {rows * heads_in_row * dim, dim, heads_in_row * dim, 1};
}

/// The operands of a problem in a graph.
class Operands {
 public:
  Operands(Graph& graph, const Problem& problem)
      : graph_(graph), problem_(problem), strides_(natural_strides(problem)) {}

  DataType type() const { return problem_.dtype == DType::bf16 ? DataType::bf16 : DataType::fp16; }

  Tensor q() const { return add(Operand::q, query_sizes(problem_.dim), strides_.q); }
  Tensor out() const { return add(Operand::out, query_sizes(problem_.value_dim()), strides_.out); }
  Tensor dout() const {
    return add(Operand::dout, query_sizes(problem_.value_dim()), strides_.dout);
  }
  Tensor dq() const { return add(Operand::dq, query_sizes(problem_.dim), strides_.dq); }
  Tensor dk() const { return add(Operand::dk, key_sizes(problem_.dim), strides_.dk); }
  Tensor v() const { return add(Operand::v, key_sizes(problem_.value_dim()), strides_.v); }
  Tensor dv() const { return add(Operand::dv, key_sizes(problem_.value_dim()), strides_.dv); }
  Tensor k_transposed() const {
    return add(Operand::k, transposed(key_sizes(problem_.dim)), transposed(strides_.k));
  }
  Tensor v_transposed() const {
    return add(Operand::v, transposed(key_sizes(problem_.value_dim())), transposed(strides_.v));
  }
  Tensor lse() const { return floats(Operand::lse, 1); }
  Tensor row_sums() const { return floats(Operand::row_sums, 1); }
  Tensor dq_sums() const { return floats(Operand::dq_sums, problem_.dim); }

 private:
  Axes query_sizes(std::int64_t dim) const {
    return {problem_.batch, problem_.heads, problem_.seqlen_q, dim};
  }
  Axes key_sizes(std::int64_t dim) const {
    return {problem_.batch, problem_.kv_heads(), problem_.keys(), dim};
  }
  Tensor add(Operand which, const Axes& sizes, const Axes& strides) const {
    return graph_.operand(static_cast<std::int64_t>(which), sizes, strides, type());
  }
  Tensor floats(Operand which, std::int64_t dim) const {
    const Axes sizes = query_sizes(dim);
    return graph_.operand(static_cast<std::int64_t>(which), sizes, dense(sizes), DataType::fp32);
  }

  Graph& graph_;
  const Problem& problem_;
  OperandStrides strides_;
};

/// Hides the keys behind a query's position. cuDNN looks for this order of operations: with as many
/// keys as queries nothing is added, otherwise keys first and then queries.
Tensor hide_later_keys(Graph& graph, const Problem& problem, const Tensor& scores) {
  Tensor position = graph.index(scores, 2);
  const Tensor key = graph.index(scores, 3);
  if (problem.keys() != problem.seqlen_q) {
    const Tensor keys = graph.constant(static_cast<std::int32_t>(problem.keys()));
    position = graph.pointwise_of_indices(PointwiseMode::add, position, keys);
    const Tensor queries = graph.constant(static_cast<std::int32_t>(problem.seqlen_q));
    position = graph.pointwise_of_indices(PointwiseMode::subtract, position, queries);
  }
  const Tensor hidden = graph.constant(-std::numeric_limits<float>::infinity());
  return graph.where_at_least(position, key, scores, hidden);
}

Tensor scale_of(Graph& graph, const Problem& problem) {
  return graph.constant(static_cast<float>(problem.softmax_scale()));
}

/// The sum of each group of heads is the gradient of their key head.
void multiply_for_key_heads(Graph& graph, const Tensor& weights, const Tensor& rows,
                            const Tensor& gradient) {
  if (weights.sizes[1] == gradient.sizes[1]) {
    graph.multiply_matrices(weights, rows, gradient);
    return;
  }
  const Axes sizes = {weights.sizes[0], weights.sizes[1], weights.sizes[2], rows.sizes[3]};
  const Tensor of_heads = graph.virtual_tensor(sizes, dense(sizes), gradient.type);
  graph.multiply_matrices(weights, rows, of_heads);
  graph.reduce(ReductionOperator::add, of_heads, gradient);
}

}  // namespace

bool is_causal(const Problem& problem) {
  return problem.effective_window() == Window{.left = -1, .right = 0};
}

OperandStrides natural_strides(const Problem& problem) {
  const std::int64_t queries = problem.seqlen_q, keys = problem.keys();
  const std::int64_t heads = problem.heads, kv_heads = problem.kv_heads();
  const std::int64_t dim = problem.dim, dim_v = problem.value_dim();
  OperandStrides strides;
  strides.q = row_major(queries, heads, dim);
  strides.k = row_major(keys, kv_heads, dim);
  strides.v = row_major(keys, kv_heads, dim_v);
  if (problem.layout == Layout::kvpacked)
    strides.k = strides.v = row_major(keys, 2 * kv_heads, dim);
  if (problem.layout == Layout::qkvpacked)
    strides.q = strides.k = strides.v = row_major(keys, 3 * heads, dim);
  strides.out = strides.dout = row_major(queries, heads, dim_v);
  strides.dq = strides.q;
  strides.dk = strides.k;
  strides.dv = strides.v;
  return strides;
}

Graph forward_graph(const Library& library, const Problem& problem) {
  Graph graph(library);
  const Operands operands(graph, problem);
  const Tensor products = graph.multiply_matrices(operands.q(), operands.k_transposed());
  const Tensor scale = scale_of(graph, problem);
  Tensor logits = graph.pointwise(PointwiseMode::multiply, products, &scale);
  if (is_causal(problem)) logits = hide_later_keys(graph, problem, logits);

  const Tensor maximum = graph.reduce_rows(ReductionOperator::maximum, logits);
  const Tensor below = graph.pointwise(PointwiseMode::subtract, logits, &maximum);
  const Tensor weights = graph.pointwise(PointwiseMode::exponential, below);
  const Tensor sum = graph.reduce_rows(ReductionOperator::add, weights);
  const Tensor log_sum = graph.pointwise(PointwiseMode::logarithm, sum);
  graph.pointwise_into(PointwiseMode::add, maximum, &log_sum, operands.lse());

  const Tensor probabilities =
      graph.virtual_tensor(weights.sizes, weights.strides, operands.type());
  graph.pointwise_into(PointwiseMode::divide, weights, &sum, probabilities);
  graph.multiply_matrices(probabilities, operands.v(), operands.out());
  return graph;
}

Graph backward_graph(const Library& library, const Problem& problem, bool deterministic) {
  Graph graph(library);
  const Operands operands(graph, problem);
  const Tensor q = operands.q(), k_transposed = operands.k_transposed();
  const Tensor dout = operands.dout(), out = operands.out(), lse = operands.lse();
  const Tensor scale = scale_of(graph, problem);

  // dout · out of each row. The factor of one is where dropout would be.
  const Tensor dout_out = graph.pointwise(PointwiseMode::multiply, dout, &out);
  const Tensor sums = graph.reduce_rows(ReductionOperator::add, dout_out);
  const Tensor row_sums = operands.row_sums(), one = graph.constant(1.0F);
  graph.pointwise_into(PointwiseMode::multiply, sums, &one, row_sums);

  const Tensor products = graph.multiply_matrices(q, k_transposed);
  const Tensor logits = graph.pointwise(PointwiseMode::multiply, products, &scale);
  Tensor exponents = graph.pointwise(PointwiseMode::subtract, logits, &lse);
  if (is_causal(problem)) exponents = hide_later_keys(graph, problem, exponents);
  const Tensor probabilities = graph.pointwise(PointwiseMode::exponential, exponents);
  multiply_for_key_heads(graph, graph.transpose(probabilities, operands.type()), dout,
                         operands.dv());

  const Tensor dp = graph.multiply_matrices(dout, operands.v_transposed());
  const Tensor centred = graph.pointwise(PointwiseMode::subtract, dp, &row_sums);
  const Tensor dlogits = graph.pointwise(PointwiseMode::multiply, centred, &probabilities);
  const Tensor ds = graph.pointwise(PointwiseMode::multiply, dlogits, &scale);
  multiply_for_key_heads(graph, graph.transpose(ds, operands.type()), q, operands.dk());

  const Tensor k = graph.transpose(k_transposed, operands.type());
  if (deterministic) {
    graph.multiply_matrices(ds, k, operands.dq());
  } else {
    const Tensor dq_sums = operands.dq_sums();
    graph.multiply_matrices(ds, k, dq_sums);
    graph.pointwise_into(PointwiseMode::identity, dq_sums, nullptr, operands.dq());
  }
  return graph;
}

}  // namespace strobe::cuda::cudnn
