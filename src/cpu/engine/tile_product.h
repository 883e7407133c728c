#pragma once
// A product of packed tiles as data: where its operands and results lie.

#include "cpu/engine/bf16_terms.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr int kTile = 16;                      // rows, and columns of a result
constexpr int kTileDepth = 32;                 // elements along the sum
constexpr int kTileSize = kTile * kTileDepth;  // bf16 of one tile

/// Pairs of terms whose products count, the largest last, in an order that changes one side at a
/// time where it can: what stays need not be loaded again.
template <int terms>
struct TermPairs;
template <>
struct TermPairs<1> {
  static constexpr int kCount = 1;
  static constexpr int left[] = {0};
  static constexpr int right[] = {0};
};
template <>
struct TermPairs<2> {
  static constexpr int kCount = 4;  // all: an LSE is wanted to 1e-5 whatever the inputs' size
  static constexpr int left[] = {0, 1, 1, 0};
  static constexpr int right[] = {1, 1, 0, 0};
};
template <>
struct TermPairs<3> {
  static constexpr int kCount = 6;
  static constexpr int left[] = {0, 0, 1, 1, 2, 0};
  static constexpr int right[] = {2, 1, 1, 0, 0, 0};
};

/// What a product does to the c that it finds.
enum class Into {
  nothing,  // replaces it
  sums,     // goes on with its sums
  whole,    // is added to it once it is whole: c is rounded once, and not with each pair of terms
};

/// rows x columns tiles of results, made in blocks of two by two, the blocks of a row first.
/// Distances between tiles are in bf16.
struct TileProduct {
  const std::uint16_t* left = nullptr;
  const std::uint16_t* right = nullptr;
  std::int64_t left_row = 0, left_step = 0;  // to the next tile along the result, along the sum
  std::int64_t right_column = 0, right_step = 0;
  std::int64_t steps = 0;  // along the sum
  float* c = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0, columns = 0;
  Into into = Into::nothing;
  std::int64_t column = 0;  // of the next block; its row has been taken off all the others

  bool done() const { return rows <= 0; }
  bool whole() const { return rows >= 2 && column + 2 <= columns; }
  std::int64_t blocks() const { return (rows + 1) / 2 * ((columns + 1) / 2) - column / 2; }

  const std::uint16_t* block_right() const { return right + column * right_column; }
  float* block_c() const { return c + column * kTile; }

  STROBE_INLINE void next_block() {
    column += 2;
    if (column < columns) return;
    column = 0;
    rows -= 2;
    left += 2 * left_row;
    c += 2 * kTile * stride;
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
