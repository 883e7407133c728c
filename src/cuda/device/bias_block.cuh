#pragma once

#include "device/logits.cuh"
#include "device/ptx/again.cuh"
#include "device/warpgroup.cuh"

namespace strobe::cuda {

/// A block of a bias in shared memory: a warpgroup's 64 rows, or one row that serves all queries.
template <class Element, int keys, bool per_query>
struct BiasBlock {
  static_assert(keys % 16 == 0);
  using Tile = SwizzledTile<per_query ? kWarpgroupRows : 8, keys>;
  static constexpr int kBoxRows = per_query ? kWarpgroupRows : 1;

  Word begin;

  /// Of one row, the first line of every panel is filled.
  STROBE_DEVICE static void load(Word to, const TensorMap& map, BoxOrigin origin, Word barrier) {
    ptx::arrive_and_expect(barrier, Tile::kPanels * kBoxRows * Tile::kLineBytes);
#pragma unroll
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(to + panel * Tile::kPanelBytes, map, origin, barrier,
                    ptx::CachePolicy::evict_first);
      origin.at[0] += Tile::kPanelColumns;
    }
  }

  /// Turns a warp's scores into logits; its rows are from `first_query` on.
  template <class Logits>
  STROBE_DEVICE void apply(const Logits& logits, Accumulator<1, keys / 8>& scores, int first_query,
                           Word first_key) const {
    using Storage = typename Element::Storage;
#pragma unroll
    for (int step = 0; step < keys / 16; ++step) {
      Word pairs[4];
      load_step(pairs, step);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int row = i / 2 % 2;
        const int column_tile = 2 * step + i / 4;
        const auto added = static_cast<Storage>(pairs[i / 2] >> (i % 2 * 16));
        float derivative;
        float& x = scores.at(row, column_tile, i % 2);
        x = logits.biased(x, Element::widen(added), first_query + scores.row_index(row),
                          first_key + scores.column_index(column_tile) + i % 2, derivative);
      }
    }
  }

 private:
  /// Sixteen keys of the warp's rows, as sums of a product lie.
  STROBE_DEVICE void load_step(Word (&pairs)[4], int step) const {
    const Word thread = ptx::again(threadIdx.x) % kWarpgroupThreads;
    const Word row = per_query ? thread / 32 * 16 + thread % 16 : 0;
    ptx::load_matrices(pairs, begin + Tile::chunk_offset(row, 2 * step + thread / 16 % 2));
  }
};

}  // namespace strobe::cuda
