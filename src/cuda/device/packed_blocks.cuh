#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// Blocks of rows of packed sequences, numbered so that nobody has to count those before: the first
/// of a sequence has as number the whole blocks of rows before it, plus one for each sequence
/// before. So there are rows / block_rows + sequences numbers for all rows, and a few of them lie
/// behind the end of their sequence.
template <int block_rows>
struct PackedBlocks {
  const int* offsets;  ///< [sequences + 1], the first rows

  STROBE_DEVICE int first_of(int sequence) const {
    return offsets[sequence] / block_rows + sequence;
  }

  /// Which sequence a block is of. Called by whole warps.
  STROBE_DEVICE int sequence_of(int block, int sequences) const {
    int begin = 0;
    int end = sequences;
    while (end - begin > 1) {
      const int step = ceil_div(end - begin, 32);
      const int candidate = begin + lane_index() * step;
      const bool reached = candidate < end && first_of(candidate) <= block;
      begin += (__popc(__ballot_sync(kAllLanes, reached)) - 1) * step;
      end = smaller(end, begin + step);
    }
    return begin;
  }
};

}  // namespace strobe::cuda
