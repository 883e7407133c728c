#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// A warp's rows of an fp32 matrix in the layout of tensor-core sums (see ptx/mma.cuh): tiles of
/// 16 rows × 8 columns. A lane holds two columns of each tile, in 2 · kRowTiles of the rows.
template <int row_tiles, int column_tiles>
struct Accumulator {
  static constexpr int kRowTiles = row_tiles;
  static constexpr int kColumnTiles = column_tiles;
  static constexpr int kRows = 2 * row_tiles;  ///< of a lane

  float tile[row_tiles][column_tiles][4];

  STROBE_DEVICE void clear() {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) {
#pragma unroll
      for (int c = 0; c < column_tiles; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) tile[r][c][i] = 0;
      }
    }
  }

  /// Element `i`, 0 or 1, of a lane's row in a column tile.
  STROBE_DEVICE float& at(int row, int column_tile, int i) {
    return tile[row / 2][column_tile][row % 2 * 2 + i];
  }

  STROBE_DEVICE void scale_row(int row, float factor) {
#pragma unroll
    for (int c = 0; c < column_tiles; ++c) {
      at(row, c, 0) *= factor;
      at(row, c, 1) *= factor;
    }
  }

  /// Where a lane's row lies among the warp's.
  STROBE_DEVICE static int row_index(int row) {
    return row * 8 + lane_index() / 4;
  }

  /// Where a lane's first element of a column tile lies; the second follows it.
  STROBE_DEVICE static int column_index(int column_tile) {
    return column_tile * 8 + lane_index() % 4 * 2;
  }
};

/// Sum or maximum over the four lanes that share a row.
template <class Combine>
STROBE_DEVICE float over_row(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(kAllLanes, x, 1));
  return combine(x, __shfl_xor_sync(kAllLanes, x, 2));
}

/// Of the four lanes that share a row, the i-th gets the i-th word of each, in their order.
STROBE_DEVICE void transpose_among_four_lanes(Word (&words)[4]) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (lane_index() & distance) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      Word& low = words[i];
      Word& high = words[i + distance];
      const Word theirs = __shfl_xor_sync(kAllLanes, upper ? low : high, distance);
      (upper ? low : high) = theirs;
    }
  }
}

}  // namespace strobe::cuda
