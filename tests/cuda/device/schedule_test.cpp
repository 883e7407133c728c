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
    auto& taken = all.emplace_back();
    for (Word index = pairs.first(); index < tiles; index = pairs.after(index)) {
      const auto [tile, head] = pairs.place_of(index);
      taken.push_back({static_cast<int>(tile), static_cast<int>(head)});
    }
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

void expect_each_once(int heads, int tiles_of_head, int takers, bool all_paired) {
  std::set<Taken> seen;
  for (const auto& taken : handed_out(heads, tiles_of_head, takers, all_paired)) {
    for (const Taken& tile : taken) {
      EXPECT_TRUE(tile.head >= 0 && tile.head < heads);
      EXPECT_TRUE(tile.block >= 0 && tile.block < tiles_of_head);
      EXPECT_TRUE(seen.insert(tile).second) << "twice: " << tile.head << ", " << tile.block;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(heads * tiles_of_head))
      << takers << " take " << heads << " heads of " << tiles_of_head;
}

TEST(PairedTiles, AreHandedOutOnceEach) {
  for (const int takers : {1, 2, 7, 132}) {
    for (const int heads : {1, 2, 5, 16, 100, 512}) {
      for (const int tiles_of_head : {1, 2, 3, 4, 7, 16}) {
        for (const bool all_paired : {false, true})
          expect_each_once(heads, tiles_of_head, takers, all_paired);
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

}  // namespace
}  // namespace strobe::cuda
