#pragma once

#include "device/logits.cuh"
#include "device/ptx/again.cuh"
#include "device/warpgroup.cuh"

namespace strobe::cuda {

/// A block of a bias in shared memory: a row for every query, or one that serves all.
template <class Element, int rows, int keys>
struct BiasBlock {
  static_assert(keys % 16 == 0);
  using Tile = SwizzledTile<round_up(rows, 8), keys>;
  static constexpr bool kPerQuery = rows > 1;

  Word begin;

  /// Of one row, the first line of every panel is filled.
  STROBE_DEVICE static void load(Word to, const TensorMap& map, BoxOrigin origin, Word barrier) {
    ptx::arrive_and_expect(barrier, Tile::kPanels * rows * Tile::kLineBytes);
#pragma unroll
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(to + panel * Tile::kPanelBytes, map, origin, barrier,
                    ptx::CachePolicy::evict_first);
      origin.at[0] += Tile::kPanelColumns;
    }
  }

  /// Turns the scores of a warp of a warpgroup into logits; its rows are from `first_query` on.
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

  /// Two queries each of a warp's 16 keys, in 16 columns from `column` on, as sums of a product lie
  /// whose rows are keys: of the first eight columns, a lane's first row and its second, then of
  /// the others.
  STROBE_DEVICE void load_transposed(Word (&pairs)[4], Word first_key, Word column) const {
    const Word lane = ptx::again(threadIdx.x % 32);
    const Word row = kPerQuery ? column + lane / 16 * 8 + lane % 8 : 0;
    ptx::load_matrices_transposed(pairs,
                                  begin + Tile::chunk_offset(row, first_key / 8 + lane / 8 % 2));
  }

 private:
  /// Sixteen keys of the warp's rows, as sums of a product lie.
  STROBE_DEVICE void load_step(Word (&pairs)[4], int step) const {
    const Word thread = ptx::again(threadIdx.x) % kWarpgroupThreads;
    const Word row = kPerQuery ? thread / 32 * 16 + thread % 16 : 0;
    ptx::load_matrices(pairs, begin + Tile::chunk_offset(row, 2 * step + thread / 16 % 2));
  }
};

}  // namespace strobe::cuda
