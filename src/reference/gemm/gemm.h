#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "reference/gemm/library.h"
#include "reference/gemm/row_kernels.h"
#include "reference/sequence.h"
#include "strobe/implementation.h"

// Attention as one writes it on top of a library of matrix products. A block of queries meets the
// keys block by block, the products are the library's, and the rows of scores between them are
// loops. The library works in the thread that calls it; our threads share out the blocks.
namespace strobe::reference::gemm {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// One array of the workspace.
struct Piece {
  std::int64_t offset = 0;  // in bytes
  std::int64_t each = 0;    // bytes from one thread's to the next, of those that every thread has
};

/// What a plan decided. Pieces that the problem does not need have no place. Elements are floats,
/// or bf16 where the library multiplies bf16.
struct GemmPlan {
  GemmPlan(const Problem& problem, const Library& which, int thread_count);

  const Library* library;
  const RowKernels* kernels;
  int threads;
  bool bf16;  // what the operands of the products are
  std::int64_t query_block = 0;
  std::int64_t key_block = 0;
  std::int64_t span = 0;  // room for keys in a row of scores
  std::int64_t finite_blocks = 0;
  std::int64_t parts = 1;  // of the queries, each with sums of dk and dv of its own
  std::int64_t bytes = 0;

  Piece k, v;                // elements [kv_heads, total_k, dim]
  Piece finite_k, finite_v;  // bool [kv_heads, finite_blocks]: see GemmRun::finite
  Piece dk, dv;              // float [parts, kv_heads, total_k, dim]
  Piece dsinks;              // float [heads, total_q]: what each row adds to its sink's

  // Of each thread.
  Piece queries, douts;             // elements [query_block, dim]
  Piece scores, gradients;          // float [query_block, span]: S then P, dP then dS
  Piece weights, gradient_weights;  // the same in bf16
  Piece slopes;                     // float [query_block, span]: the derivative of softcap
  Piece row;                        // float [span]: a row of the bias, or of dropout
  Piece sums;                       // float [query_block, max(dim, dim_v)]: O or dQ

  std::size_t element_bytes() const { return bf16 ? 2 : 4; }

 private:
  void choose_blocks(const Problem& problem);
};

/// One call.
struct GemmRun {
  const Problem& problem;
  const Tensors& tensors;
  const GemmPlan& plan;
  std::byte* workspace;

  template <class T>
  T* at(const Piece& piece, int thread = 0) const {
    return reinterpret_cast<T*>(workspace + piece.offset + thread * piece.each);
  }

  /// Row `row` of [rows, columns] elements.
  void* element_row(const Piece& piece, std::int64_t row, std::int64_t columns,
                    int thread = 0) const {
    return at<std::byte>(piece, thread) +
           row * columns * static_cast<std::int64_t>(plan.element_bytes());
  }

  /// The row of a [kv_heads, total_k, ...] array that belongs to the first key of a sequence.
  std::int64_t key_row(const Sequence& sequence, std::int64_t kv_head) const;

  /// Whether block `block` of the sequence's keys holds neither NaN nor infinity in K, or in V.
  bool& finite(const Piece& piece, const Sequence& sequence, std::int64_t kv_head,
               std::int64_t block) const;
};

/// One query head of one sequence, and how it turns scores into logits.
class Head {
 public:
  Head(const GemmRun& call, const Sequence& which, std::int64_t head, int thread_index);

  const GemmRun& run;
  const Sequence sequence;
  const std::int64_t index;
  const std::int64_t kv_head;
  const int thread;
  const float sink;  // -inf if there is none

  KeyRange visible(std::int64_t query) const {
    return run.problem.visible(query, sequence.length_q, sequence.length_k);
  }

  /// Keys that any of the queries [begin, end) sees, from the beginning of a block on.
  KeyRange visible(std::int64_t begin, std::int64_t end) const;

  struct Logits {
    float largest;
    bool any;  // whether a key is left that the bias does not hide
  };

  /// Turns the products of one query with `keys` into logits. `slopes` gets the derivative of the
  /// softcap, if there is one and it is not null.
  Logits logits(std::int64_t query, KeyRange keys, float* scores, float* slopes) const;

  /// keep[n] = 1 / (1 - dropout) or 0 for key keys.begin + n.
  void draw_dropout(std::int64_t query, KeyRange keys, float* keep) const;

 private:
  TensorView bias_;
  float slope_;
};

/// K and V as elements, and whether they are finite.
void pack_keys(const GemmRun& run);

/// Copies rows [begin, end) as elements. Returns whether all of them are finite.
bool pack_rows(const GemmRun& run, const TensorView& rows, std::int64_t begin, std::int64_t end,
               void* elements);

/// The library's product. If the right operand is not `finite`, loops that leave out what the left
/// one has a 0 for: a hidden key must not show, not even as 0 · infinity.
void compute(const GemmRun& run, Product product, bool finite = true);

void gemm_forward(const GemmRun& run);
void gemm_backward(const GemmRun& run);

}  // namespace strobe::reference::gemm
