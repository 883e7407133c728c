#include "device/swizzled_tile.cuh"

#include <gtest/gtest.h>

#include <set>

#include "cuda/kernels/configuration.h"

namespace strobe::cuda {
namespace {

template <class Tile>
void expect_places() {
  constexpr Word kRows = Tile::kRows;
  constexpr Word kChunks = Tile::kChunks;
  std::set<Word> places;
  for (Word row = 0; row < kRows; ++row) {
    for (Word chunk = 0; chunk < kChunks; ++chunk) {
      const Word place = Tile::chunk_offset(row, chunk);
      EXPECT_EQ(place % 16, 0);
      EXPECT_LT(place, static_cast<Word>(Tile::kCopiedBytes));
      EXPECT_TRUE(places.insert(place).second) << row << ", " << chunk;
    }
  }
  // Eight rows that are read at once lie in different banks.
  for (Word row = 0; row < kRows; row += 8) {
    for (Word chunk = 0; chunk < kChunks; ++chunk) {
      std::set<Word> banks;
      for (Word i = 0; i < 8; ++i) banks.insert(Tile::chunk_offset(row + i, chunk) % 128);
      EXPECT_EQ(banks.size(), 8) << row << ", " << chunk;
    }
  }
}

TEST(SwizzledTile, EveryChunkHasAPlaceOfItsOwn) {
  expect_places<SwizzledTile<64, 64>>();
  expect_places<SwizzledTile<80, 144>>();
  expect_places<SwizzledTile<80, 144, true>>();
  expect_places<SwizzledTile<64, 136, true>>();
}

TEST(SwizzledTile, TakesWhatTheHostPlans) {
  EXPECT_EQ((SwizzledTile<64, 128, ends_narrow(128)>::kBytes), narrow_tile_bytes(64, 128));
  EXPECT_EQ((SwizzledTile<64, 136, ends_narrow(136)>::kBytes), narrow_tile_bytes(64, 136));
  EXPECT_EQ((SwizzledTile<80, 144, ends_narrow(144)>::kBytes), narrow_tile_bytes(80, 144));
  EXPECT_EQ((SwizzledTile<80, 152, ends_narrow(152)>::kBytes), narrow_tile_bytes(80, 152));
  EXPECT_EQ((SwizzledTile<80, 144>::kBytes), 80 * tile_row_bytes(144));
  EXPECT_LT(narrow_tile_bytes(80, 144), 80 * tile_row_bytes(144) * 4 / 5);
}

}  // namespace
}  // namespace strobe::cuda
