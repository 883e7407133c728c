#pragma once

#include "cuda/baselines/cudnn/graph.h"
#include "strobe/problem.h"

// Attention as a graph of matrix products, reductions and pointwise operations, which cuDNN knows
// by its form and computes with one fused kernel.
namespace strobe::cuda::cudnn {

/// What an execution has the address of.
enum class Operand : std::int64_t { q = 1, k, v, out, lse, dout, dq, dk, dv, row_sums, dq_sums };

/// Whether queries see no key behind their position, and that is all that is hidden.
bool is_causal(const Problem& problem);

/// Strides, in elements, of the tensors that a problem has, [batch, heads, rows, dim] each.
struct OperandStrides {
  Axes q{}, k{}, v{}, out{}, dout{}, dq{}, dk{}, dv{};
};

/// Of dense tensors [batch, rows, heads, dim], packed as the problem's layout says.
OperandStrides natural_strides(const Problem& problem);

/// q, k and v to out and lse.
Graph forward_graph(const Library& library, const Problem& problem);

/// q, k, v, out, lse and dout to dq, dk and dv. row_sums, fp32 [batch, heads, seqlen_q], and
/// dq_sums, fp32 [batch, heads, seqlen_q, dim], are for its own use; a deterministic one has no
/// dq_sums.
Graph backward_graph(const Library& library, const Problem& problem, bool deterministic);

}  // namespace strobe::cuda::cudnn
