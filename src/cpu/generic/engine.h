#pragma once
// The seam between the algorithms and an instruction set: how operands are packed and multiplied.
//
// Scores lie in blocks [keys][kPanel] of fp32: keys in rows, a panel of queries side by side in the
// lanes. Three products are all there is:
//
//   scores      c[key][lane] = key . query                S = K Q^T,  dP = V dO^T
//   add_panel   c[column][lane] += column . block         O^T += V^T P,  dQ^T += K^T dS
//   add_rows    c[key][column] += block . query rows      dV += P dO,  dK += dS Q
//
// The first add_panel of a sum sets c, whatever was there, and so does a background's first
// add_rows. Each has a left and a right operand in a layout of the engine's own: keys and queries
// are packed, blocks of probabilities and gradients are put there as they are computed, kBlockRows
// rows of kBlockVectors vectors at a time, as a left operand ([keys][panels of queries]), as a
// right one ([keys][one panel]), or as both.
//
// An engine whose products leave the vector units free has a Background that does them little by
// little while exponentials are taken: `pace`, then `advance()` once a turn.
//
// The keys given are a multiple of kKeyStep; rows past `count` are packed as zeros, like all other
// padding. A pack says whether everything it met was finite: unless an engine takes anything, the
// algorithms then do the item again with one that does.

#include "cpu/generic/pack.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// The background of an engine whose products keep the vector units busy themselves.
struct NoBackground {
  static constexpr bool kOverlaps = false;
  void pace(std::int64_t, std::int64_t) {}
  void advance() {}
  void finish() {}
};

using AnyRow = const void* (*)(std::int64_t);

/// What the forward pass asks of an engine.
template <class E>
concept ForwardEngine = requires(std::int64_t n, void* to, const void* from, float* c,
                                 const Vec (&rows)[E::kBlockRows][E::kBlockVectors], AnyRow row,
                                 DType dtype, bool first) {
  typename E::Setup;  // holds what a thread must set up, for as long as it computes
  {E::Background::kOverlaps || true};
  {E::kPanel + 0};     // queries side by side
  {E::kKeyBlock + 0};  // keys of a block
  {E::kKeyStep + 0};
  {E::kColumnStep + 0};  // c of add_panel has rows, c of add_rows columns, up to a multiple of this
  {E::kTakesAnything || true};  // also what is not finite
  {E::kInPlace || true};        // a right block may lie where its scores did

  {E::pack_key_rows(row, dtype, n, n, n, to) || true};  // count, keys, depth
  {E::pack_query_panel(row, dtype, n, n, to) || true};  // count, depth
  E::scores(n, n, from, from, c);                       // keys, depth

  {E::pack_key_columns(row, dtype, n, n, n, to) || true};  // count, keys, columns
  E::put_right(to, n, n, 0, rows);                         // keys, first key, first vector
  E::add_panel(n, n, n, from, from, c, first);             // columns, keys, keys that were packed

  {E::key_rows_bytes(n, n) + E::query_panel_bytes(n)};
  {E::key_columns_bytes(n, n) + E::right_block_bytes(n)};
};

/// And what the backward pass asks besides.
template <class E>
concept BackwardEngine = ForwardEngine<E> &&
    requires(std::int64_t n, void* to, const void* from, float* c,
             const Vec (&rows)[E::kBlockRows][E::kBlockVectors], AnyRow row, DType dtype) {
  {E::kGradientKeys + 0};  // keys of a block
  {E::kOneBlock || true};  // a left block's panel is a right block as well

  E::put_left(to, n, n, n, 0, rows);                      // keys, panel, first key, first vector
  E::put_both(to, to, n, n, n, 0, rows);                  // left, right, the same
  {E::pack_query_rows(row, dtype, n, n, n, to) || true};  // count, panels, columns
  E::add_rows(n, n, n, from, from, c, n);                 // keys, panels, columns, stride of c

  {E::query_rows_bytes(n, n) + E::left_block_bytes(n, n)};
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
