#pragma once
// Sums of dq in the workspace, which the kernel of dk and dv adds to and rows.cu turns into dq.

#include "kernels/portable_backward/common.cuh"

namespace strobe::cuda {

/// A row for each query. Its columns are in parts, one for each warp that shares the row; the last
/// one may be smaller, and some may be missing. In a part, two column tiles lie in the order in
/// which lanes hold them, so that a lane adds to four neighbours at a time; the last tile may be
/// alone.
struct QuerySumsLayout {
  static constexpr int kPartColumns = config::kQueryPartColumns;
  static constexpr int kPartTiles = kPartColumns / 8;
  static constexpr int kRowFloats = config::kQuerySumFloats;
  static_assert(kRowFloats >= config::kDim && kRowFloats % 8 == 0);

  /// Whether a tile of the part that begins at column `first` shares its place with the one after
  /// or before it.
  STROBE_DEVICE static constexpr bool is_paired(int first, int tile) {
    constexpr int kTilesOfSmaller = kRowFloats % kPartColumns / 8;  // 0 if all are whole
    const int second = tile / 2 * 2 + 1;
    const bool may_be_missing = second == kTilesOfSmaller;
    return second < kPartTiles && !(may_be_missing && first + second * 8 == kRowFloats);
  }

  /// Where in that part the two columns of a tile lie that the lanes with `lane % 4 == quarter`
  /// hold.
  STROBE_DEVICE static constexpr int offset(int first, int tile, int quarter) {
    return is_paired(first, tile) ? tile / 2 * 16 + quarter * 4 + tile % 2 * 2
                                  : tile * 8 + quarter * 2;
  }

  /// Likewise in the row, for the tile of the whole dim.
  STROBE_DEVICE static constexpr int row_offset(int tile, int quarter) {
    const int first = tile / kPartTiles * kPartColumns;
    return first + offset(first, tile % kPartTiles, quarter);
  }
};

}  // namespace strobe::cuda
