#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// Sums of dq in the workspace: a tile for each block of queries of a head, in slices of 64 queries
/// that are added at once. A slice has all columns; or where the block has no more than 64 queries,
/// `slice_columns` from a multiple of 64 on, and if these are more than 64, the last of them come
/// again in the next. It lies as a warpgroup holds it (see Accumulator): for eight columns at a
/// time, the four sums of its first thread, then those of the second, and so on.
template <int block_queries, int columns, int slice_columns>
struct QuerySlices {
  static constexpr int kRows = 64;
  static constexpr int kStep = 64;  ///< columns from one slice to the next
  static constexpr bool kAlongRows = block_queries > kRows;
  static constexpr int kColumns = slice_columns;
  static constexpr int kCount =
      kAlongRows ? block_queries / kRows : ceil_div(columns - (slice_columns - kStep), kStep);
  static constexpr int kFloats = kRows * kColumns;
  static constexpr int kTileFloats = kCount * kFloats;

  /// Where the four sums of a thread of the warpgroup lie in a slice.
  STROBE_DEVICE static constexpr int offset(int column_tile, int thread) {
    return (column_tile * 128 + thread) * 4;
  }
};

}  // namespace strobe::cuda
