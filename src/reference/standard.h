#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/threads.h"
#include "reference/sequence.h"
#include "strobe/implementation.h"

// Standard attention, unfused: S = QKᵀ, P = softmax(S) and O = PV are whole passes over the batch,
// and the [seqlen_q, seqlen_k] matrices between them lie in memory in the problem's dtype.
namespace strobe::reference {

/// Matrices [batch, heads, rows, columns] in the workspace, a slot of the longest lengths for each
/// sequence, so that finding one needs no sums over lengths.
struct Matrices {
  std::int64_t offset = 0;  // of the first, in bytes
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t element_bytes = 0;
};

/// Queries or keys that one task handles.
inline constexpr std::int64_t kBlock = 64;

/// What a plan decided: every array of the workspace. Arrays that the problem does not need have
/// no place.
struct StandardPlan {
  StandardPlan(const Problem& problem, int thread_count);

  int threads;
  std::int64_t bytes = 0;

  // The operands as floats, [batch, heads, length, dim], and transposed.
  Matrices q, k, v, dout, k_t, v_t;
  // [batch, heads, seqlen_q, seqlen_k] in the problem's dtype.
  Matrices scores;   // S, then P in its place
  Matrices capped;   // S after softcap, before the bias
  Matrices dscores;  // dP, then dS in its place
  // Float [batch, heads, 1, seqlen_q]: the sink's probability, then its gradient in its place.
  Matrices sinks;
  // Scratch of each thread, float [1, threads, ...].
  Matrices scores_row, other_row;  // [1, seqlen_k]
  Matrices sums;                   // [kBlock, max(dim, dim_v)]
  Matrices marks, weights;         // [kBlock keys, kBlock queries]
};

/// Stands in P for a key that the query does not see; no probability is negative. Keys that mask
/// or window hide are not even stored.
inline constexpr float kHidden = -1;

/// One call.
struct StandardRun {
  const Problem& problem;
  const Tensors& tensors;
  const StandardPlan& plan;
  std::byte* workspace;

  void* at(const Matrices& matrices, std::int64_t sequence, std::int64_t head, std::int64_t row,
           std::int64_t column = 0) const {
    const std::int64_t rows_before = (sequence * matrices.heads + head) * matrices.rows + row;
    return workspace + matrices.offset +
           (rows_before * matrices.columns + column) * matrices.element_bytes;
  }
  float* floats(const Matrices& matrices, std::int64_t sequence, std::int64_t head,
                std::int64_t row, std::int64_t column = 0) const {
    return static_cast<float*>(at(matrices, sequence, head, row, column));
  }
  float* scratch(const Matrices& matrices, int thread) const {
    return floats(matrices, 0, thread, 0);
  }
};

/// Rows [begin, end), queries or keys, of one head of one sequence.
struct Block {
  Sequence sequence{};
  std::int64_t head = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int thread = 0;

  KeyRange visible(const Problem& problem, std::int64_t query) const {
    return problem.visible(query, sequence.length_q, sequence.length_k);
  }
};

/// Calls body(Block) for the blocks of every sequence and head, in parallel. A block belongs to one
/// task whatever the number of threads, and with it the order of every sum.
template <class Body>
void for_each_block(std::string_view name, const StandardRun& run, std::int64_t heads,
                    std::int64_t longest, std::int64_t Sequence::*length, const Body& body) {
  const std::int64_t blocks = (longest + kBlock - 1) / kBlock;
  const auto task = [&](std::int64_t item, int thread) {
    Block block{.head = item / blocks % heads, .begin = item % blocks * kBlock, .thread = thread};
    block.sequence = sequence_at(run.problem, run.tensors, item / blocks / heads);
    block.end = std::min(block.begin + kBlock, block.sequence.*length);
    if (block.begin < block.end) body(block);
  };
  parallel_for(name, run.problem.batch * heads * blocks, run.plan.threads, task);
}

template <class Body>
void for_each_query_block(std::string_view name, const StandardRun& run, const Body& body) {
  for_each_block(name, run, run.problem.heads, run.problem.seqlen_q, &Sequence::length_q, body);
}

template <class Body>
void for_each_key_block(std::string_view name, const StandardRun& run, const Body& body) {
  for_each_block(name, run, run.problem.kv_heads(), run.problem.keys(), &Sequence::length_k, body);
}

// The matrix products (standard_products.cpp).

/// Converts the operands that the pass needs to floats.
void unpack_operands(const StandardRun& run);

/// out[0..keys.size()) = left · (columns `keys` of right_t [depth, seqlen_k]): one row of QKᵀ or
/// of dO Vᵀ.
void multiply_transposed(const StandardRun& run, const Block& queries, const float* left,
                         const Matrices& right_t, KeyRange keys, float* out);

/// Which [seqlen_q, seqlen_k] matrix weighs the rows of a sum: `scores` or `dscores`.
enum class Weights : std::uint8_t { p, ds };

/// output_i = factor · Σ_j weights_ij · rows_j over the keys that i sees: O = PV, dQ = scale dS K.
void sum_over_keys(const StandardRun& run, Weights which, const Matrices& rows, float factor,
                   const TensorView& output);

/// output_j = factor · Σ_i weights_ij · rows_i over the queries that see j, of all the query heads
/// that share the key head: dV = Pᵀ dO, dropout applied to P here, and dK = scale dSᵀ Q.
void sum_over_queries(const StandardRun& run, Weights which, const Matrices& rows, float factor,
                      const TensorView& output);

// What both passes need of the forward pass (standard_forward.cpp).

/// S with scale, softcap, bias and ALiBi, every intermediate rounded to the dtype.
void compute_scores(const StandardRun& run);

/// P in the place of S, without dropout, and the LSE if `lse` is given.
void compute_softmax(const StandardRun& run, const TensorView& lse);

/// Rounds `values` to the problem's dtype, in place and into `stored`.
void store_rounded(const Problem& problem, float* values, std::int64_t count, void* stored);

/// Multiplies values[n] by 1 / (1 - dropout) or 0, as dropout has it for key first_key + n, except
/// where p[n], which may be values[n] itself, says that the key is hidden.
void apply_dropout(const Problem& problem, const Block& block, std::int64_t query,
                   std::int64_t first_key, const float* p, float* values, std::int64_t count);

void standard_forward(const StandardRun& run);
void standard_backward(const StandardRun& run);

}  // namespace strobe::reference
