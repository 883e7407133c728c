#include "device/schedule.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace strobe::cuda {
namespace {

/// A tile of a head, and how long it takes: every later one a step longer.
struct Taken {
  int block;
  int head;

  int steps() const { return block + 1; }
  bool operator<(const Taken& other) const {
    return std::pair(head, block) < std::pair(other.head, other.block);
  }
};

template <class Order>
std::vector<Taken> taken_in(const Order& order, Word tiles) {
  std::vector<Taken> taken;
  for (Word index = order.first(); index < tiles; index = order.after(index)) {
    const auto [tile, head] = order.place_of(index);
    taken.push_back({static_cast<int>(tile), static_cast<int>(head)});
  }
  return taken;
}

/// What each of the blocks takes, in its order: all in pairs, or whole rounds of them and the rest
/// one by one.
std::vector<std::vector<Taken>> handed_out(int heads, int tiles_of_head, int takers,
                                           bool all_paired = false) {
  const auto tiles = static_cast<Word>(heads * tiles_of_head);
  const auto of_head = static_cast<Word>(tiles_of_head);
  const auto count = static_cast<Word>(takers);
  const Word paired = PairedTiles::in_whole_rounds(tiles, of_head, count);
  std::vector<std::vector<Taken>> all;
  for (Word taker = 0; taker < count; ++taker) {
    const PairedTiles pairs(tiles, of_head, all_paired ? tiles : paired, count, taker);
    all.push_back(taken_in(pairs, tiles));
  }
  return all;
}

/// Likewise there and back.
std::vector<std::vector<Taken>> handed_out_there_and_back(int heads, int tiles_of_head,
                                                          int takers) {
  const auto tiles = static_cast<Word>(heads * tiles_of_head);
  std::vector<std::vector<Taken>> all;
  for (Word taker = 0; taker < static_cast<Word>(takers); ++taker) {
    const TilesThereAndBack order(tiles, static_cast<Word>(tiles_of_head), 0,
                                  static_cast<Word>(takers), taker);
    all.push_back(taken_in(order, tiles));
  }
  return all;
}

int most_steps(const std::vector<std::vector<Taken>>& all) {
  int most = 0;
  for (const auto& taken : all) {
    int steps = 0;
    for (const Taken& tile : taken) steps += tile.steps();
    most = std::max(most, steps);
  }
  return most;
}

void expect_each_once(const std::vector<std::vector<Taken>>& all, int heads, int tiles_of_head) {
  std::set<Taken> seen;
  for (const auto& taken : all) {
    for (const Taken& tile : taken) {
      EXPECT_TRUE(tile.head >= 0 && tile.head < heads);
      EXPECT_TRUE(tile.block >= 0 && tile.block < tiles_of_head);
      EXPECT_TRUE(seen.insert(tile).second) << "twice: " << tile.head << ", " << tile.block;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(heads * tiles_of_head))
      << all.size() << " take " << heads << " heads of " << tiles_of_head;
}

TEST(Schedule, ASequenceByItselfHasItsHeadsAsASection) {
  // As many heads in a section of all sequences as would have 2^32 blocks of the longest.
  constexpr int kHeads = 32, kBlocks = 1 << 15;
  const Schedule all{
      .blocks = 4, .heads = kHeads, .sequences = 4096, .heads_per_section = kHeads * 4096};
  const Schedule its = all.of_one_sequence(kBlocks);
  for (const int block : {0, 1, kBlocks - 1}) {
    for (const int head : {0, kHeads - 1}) {
      const auto item = its.item<false, 1>(static_cast<Word>(block * kHeads + head));
      EXPECT_EQ(item.block, block);
      EXPECT_EQ(item.head, head);
      EXPECT_EQ(item.sequence, 0);
    }
  }
}

TEST(PairedTiles, AreHandedOutOnceEach) {
  for (const int takers : {1, 2, 7, 132}) {
    for (const int heads : {1, 2, 5, 16, 100, 512}) {
      for (const int tiles_of_head : {1, 2, 3, 4, 7, 16}) {
        for (const bool all_paired : {false, true})
          expect_each_once(handed_out(heads, tiles_of_head, takers, all_paired), heads,
                           tiles_of_head);
      }
    }
  }
}

TEST(PairedTiles, TakeAsLongWhereRoundsAreFull) {
  for (const auto& taken : handed_out(132, 4, 132)) {
    ASSERT_EQ(taken.size(), 4U);
    EXPECT_EQ(taken[0].steps() + taken[1].steps(), 5);
    EXPECT_EQ(taken[2].steps() + taken[3].steps(), 5);
    EXPECT_EQ(taken[0].head, taken[1].head) << "whose keys are in the cache";
  }
}

TEST(PairedTiles, EndEarlierThanOneMoreRoundOfPairs) {
  // 512 heads of 4 tiles: seven rounds of 132 pairs, of 5 steps each, and 200 tiles.
  EXPECT_EQ(most_steps(handed_out(512, 4, 132)), 7 * 5 + 4);
  // 256 heads of 8: seven rounds of 9, and 200.
  EXPECT_EQ(most_steps(handed_out(256, 8, 132)), 7 * 9 + 8);
  // Nothing to gain: 232 tiles after three rounds of 5, more than 4 steps for each block.
  EXPECT_EQ(most_steps(handed_out(256, 4, 132)), 3 * 5 + 5);
}

TEST(PairedTiles, ThatAreLeftGoFirstToThoseWithAPairLess) {
  // Three rounds of 7 pairs would be 10½ heads of 4: of 10, the last block has two pairs only.
  const auto all = handed_out(12, 4, 7);
  ASSERT_EQ(all.back().size(), 5U);
  EXPECT_EQ(all.back()[4].steps(), 4) << "the longest that is left";
}

TEST(TilesThereAndBack, AreHandedOutOnceEach) {
  for (const int takers : {1, 2, 7, 132}) {
    for (const int heads : {1, 2, 5, 100}) {
      for (const int tiles_of_head : {1, 3, 4, 7}) {
        expect_each_once(handed_out_there_and_back(heads, tiles_of_head, takers), heads,
                         tiles_of_head);
      }
    }
  }
}

TEST(TilesThereAndBack, AreOfOneHeadForNeighboursAndTakeAsLong) {
  const auto all = handed_out_there_and_back(66, 4, 132);
  for (std::size_t taker = 0; taker < all.size(); ++taker) {
    ASSERT_EQ(all[taker].size(), 2U);
    EXPECT_EQ(all[taker][0].head, static_cast<int>(taker / 4));
    EXPECT_EQ(all[taker][1].head, all[taker / 4 * 4][1].head);
    EXPECT_EQ(all[taker][0].steps() + all[taker][1].steps(), 5);
  }
}

}  // namespace
}  // namespace strobe::cuda
