#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// Sums of dq in the workspace, of 64 queries of a head, as a warpgroup holds them (see
/// Accumulator): eight columns after the other, and of these the four sums of its first thread,
/// then those of the second, and so on.
template <int columns>
struct QuerySumRows {
  static constexpr int kRows = 64;
  static constexpr int kColumnTiles = columns / 8;
  static constexpr int kFloats = kRows * columns;
  static_assert(columns % 8 == 0);

  /// Where the four sums of a thread lie.
  STROBE_DEVICE static constexpr int offset(int column_tile, int thread) {
    return (column_tile * 128 + thread) * 4;
  }
};

/// How those of a block of queries, a tile, are added to: in `count` slices of 64 queries, or where
/// the block has no more, of 64 columns, the last of which has what is left.
template <int block_queries, int columns, int count>
struct QuerySlices {
  using Rows = QuerySumRows<columns>;
  static constexpr int kCount = count;
  static constexpr int kStep = 64;  ///< columns from one to the next
  static constexpr bool kAlongRows = block_queries > Rows::kRows;
  static constexpr int kTileFloats = block_queries * columns;
  static constexpr int kLastTiles = Rows::kColumnTiles - (kCount - 1) * (kStep / 8);  ///< if not
  static constexpr int kMostColumnTiles =
      kAlongRows || kCount == 1 ? Rows::kColumnTiles : larger(kStep / 8, kLastTiles);

  /// Where a slice begins in its tile.
  STROBE_DEVICE static constexpr int first(int slice) {
    return slice * (kAlongRows ? Rows::kFloats : Rows::offset(kStep / 8, 0));
  }
  STROBE_DEVICE static constexpr int column_tiles(int slice) {
    if (kAlongRows) return Rows::kColumnTiles;
    return slice + 1 < kCount ? kStep / 8 : kLastTiles;
  }
  STROBE_DEVICE static constexpr int floats(int slice) {
    return Rows::offset(column_tiles(slice), 0);
  }
};

}  // namespace strobe::cuda
