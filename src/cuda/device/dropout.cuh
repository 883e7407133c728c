#pragma once

#include "device/accumulator.cuh"
#include "device/philox.cuh"

namespace strobe::cuda {

/// Which elements of one head of one sequence survive: word key % 4 of the draw for
/// {key / 4, query, head, sequence} decides, as everywhere in the project.
struct Dropout {
  Word seed[2];
  Word threshold;  ///< words below are dropped
  Word head;
  Word sequence;

  /// Bit i is set if key 4 · key_group + i survives.
  STROBE_DEVICE Word kept(Word key_group, int query) const {
    const FourWords drawn =
        philox({key_group, static_cast<Word>(query), head, sequence}, seed[0], seed[1]);
    Word bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) bits |= static_cast<Word>(drawn.word[i] >= threshold) << i;
    return bits;
  }

  STROBE_DEVICE bool keeps(Word key, int query) const {
    return (kept(key / 4, query) >> key % 4 & 1) != 0;
  }

  /// Zeroes what is dropped of a warp's rows from `first_query` against keys from `first_key`, a
  /// multiple of 8.
  template <class Probabilities>
  STROBE_DEVICE void apply(Probabilities& p, int first_query, Word first_key) const {
    each_dropped<Probabilities>(first_query, first_key, [&](int row, int column_tile, int i) {
      p.at(row, column_tile, i) = 0;
    });
  }

  /// Names what is dropped, as Accumulator::at does.
  template <class Probabilities, class Drop>
  STROBE_DEVICE void each_dropped(int first_query, Word first_key, Drop drop) const {
    // Two lanes, an even and the next odd one, have two each of the four keys of a draw, in two
    // rows. The even one draws for the upper row and the odd one for the lower; then they swap.
    const int member = lane_index() % 4;
    const bool odd = member % 2 != 0;
#pragma unroll
    for (int r = 0; r < Probabilities::kRowTiles; ++r) {
#pragma unroll
      for (int c = 0; c < Probabilities::kColumnTiles; ++c) {
        const int query = first_query + Probabilities::row_index(2 * r) + (odd ? 8 : 0);
        const Word mine = kept(first_key / 4 + 2 * c + member / 2, query);
        const Word others = __shfl_xor_sync(kAllLanes, mine, 1);
        const Word upper = (odd ? others : mine) >> (odd ? 2 : 0);
        const Word lower = (odd ? mine : others) >> (odd ? 2 : 0);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if ((upper >> i & 1) == 0) drop(2 * r, c, i);
          if ((lower >> i & 1) == 0) drop(2 * r + 1, c, i);
        }
      }
    }
  }
};

/// Which of a lane's scores survive, where keys are a warp's rows and queries its columns.
template <class Scores>
class TransposedSurvivors {
 public:
  TransposedSurvivors() = default;
  /// `first_key` is a multiple of 8.
  STROBE_DEVICE TransposedSurvivors(const Dropout& dropout, int first_query, Word first_key) {
    // Four lanes have one each of the four keys of a draw, in two rows and two columns: these are
    // four draws. Everyone makes one; then they tell each other.
    const int member = lane_index() / 4 % 4;
    const Word key_group = first_key / 4 + member / 2 * 2 + lane_index() / 16;
    const int query = first_query + Scores::column_index(0) + member % 2;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      kept_[i] = 0;
#pragma unroll 1  // for want of registers
      for (int pair = 0; pair < 4; ++pair) {
        const int first = query + 64 * i + 16 * pair;
        Word bits = dropout.kept(key_group, first) | dropout.kept(key_group, first + 8) << 16;
        bits <<= 4 * member;
        bits |= __shfl_xor_sync(kAllLanes, bits, 4);
        bits |= __shfl_xor_sync(kAllLanes, bits, 8);
        kept_[i] |= (bits >> member & 0x11111111U) << pair;
      }
    }
  }

  STROBE_DEVICE bool contain(int row, int column_tile, int i) const {
    const int bit = column_tile % 2 * 16 + (row * 2 + i) * 4 + column_tile / 2 % 4;
    return (kept_[column_tile / 8] >> bit & 1) != 0;
  }

 private:
  static_assert(Scores::kRows == 2 && Scores::kColumnTiles % 8 == 0);
  static constexpr int kWords = Scores::kColumnTiles / 8;
  Word kept_[kWords];
};

/// By the names that the parameters of kernels have for it.
template <class Params>
STROBE_DEVICE Dropout dropout_of(const Params& params, int sequence, int head) {
  return {{params.dropout_seed[0], params.dropout_seed[1]},
          params.dropout_threshold,
          static_cast<Word>(head),
          static_cast<Word>(sequence)};
}

}  // namespace strobe::cuda
