#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// Sums of dq in the workspace: a tile for each block of queries of a head, in slices of 64 queries
/// that are added at once. A slice has all columns, or 64 of them where the block has no more than
/// 64 queries. It lies as a warpgroup holds it (see Accumulator): for eight columns at a time, the
/// four sums of its first thread, then those of the second, and so on.
template <int block_queries, int dim>
struct QuerySlices {
  static constexpr int kRows = 64;
  static constexpr bool kAlongRows = block_queries > kRows;
  static constexpr int kColumns = kAlongRows ? round_up(dim, 16) : 64;
  static constexpr int kCount = kAlongRows ? block_queries / kRows : ceil_div(dim, 64);
  static constexpr int kFloats = kRows * kColumns;
  static constexpr int kTileFloats = kCount * kFloats;

  /// Where the four sums of a thread of the warpgroup lie in a slice.
  STROBE_DEVICE static constexpr int offset(int column_tile, int thread) {
    return (column_tile * 128 + thread) * 4;
  }

  /// Where a tile's sums of two columns lie, `column` even.
  STROBE_DEVICE static constexpr int offset_of(int row, int column) {
    const int slice = kAlongRows ? row / kRows : column / kColumns;
    const int thread = row % kRows / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    return slice * kFloats + offset(column % kColumns / 8, thread) + row / 8 % 2 * 2;
  }
};

}  // namespace strobe::cuda
