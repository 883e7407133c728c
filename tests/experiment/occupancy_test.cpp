#include <gtest/gtest.h>

#include "experiment/occupancy.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

TEST(Multiprocessor, HoldsAsManyBlocksAsItsScarcestPartAllows) {
  const Multiprocessor hopper = multiprocessor_of("sm_90a");
  const Residency registers =
      residency_of({.threads = 384, .registers = 168, .shared_bytes = 1024}, hopper);
  EXPECT_EQ(registers.blocks, 1);
  EXPECT_EQ(registers.limit, "registers");
  EXPECT_DOUBLE_EQ(registers.occupancy, 384.0 / 2048);
  const Residency shared =
      residency_of({.threads = 128, .registers = 32, .shared_bytes = 100 * 1024}, hopper);
  EXPECT_EQ(shared.blocks, 2);
  EXPECT_EQ(shared.limit, "shared memory");
  const Residency threads = residency_of({.threads = 1024, .registers = 32}, hopper);
  EXPECT_EQ(threads.blocks, 2);
  EXPECT_EQ(threads.occupancy, 1);
  EXPECT_EQ(residency_of({.threads = 32, .registers = 16}, hopper).limit, "blocks");
}

TEST(Multiprocessor, HandsOutRegistersByTheWarp) {
  // 33 registers of 32 lanes are 1056, for which a warp is given 1280.
  const Residency residency =
      residency_of({.threads = 256, .registers = 33}, multiprocessor_of("sm_80"));
  EXPECT_EQ(residency.blocks, 65536 / (8 * 1280));
}

TEST(Multiprocessor, SaysWhichAreKnown) {
  EXPECT_EQ(multiprocessor_of("sm_89").threads, 1536);
  for (const char* name : {"sm_70", "90", "sm_", ""}) {
    try {
      multiprocessor_of(name);
      FAIL() << name;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("sm_90"), std::string::npos) << error.what();
    }
  }
}

OccupancyRow occupancy_row(double occupancy, int spill_bytes, double ms) {
  OccupancyRow row{.compiled = {.spill_bytes = spill_bytes}, .residency = {.occupancy = occupancy}};
  if (ms > 0) row.timed.emplace().measurement.ms.median = ms;
  return row;
}

TEST(OccupancyRules, HoldAndFail) {
  EXPECT_EQ(
      the_usual_does_not_spill({occupancy_row(0.2, 0, 0), occupancy_row(0.2, 8, 0)}).conclusion,
      Conclusion::held);
  EXPECT_EQ(the_usual_does_not_spill({occupancy_row(0.2, 8, 0)}).conclusion, Conclusion::failed);
  EXPECT_EQ(occupancy_is_low({occupancy_row(0.2, 0, 0)}).conclusion, Conclusion::held);
  EXPECT_EQ(occupancy_is_low({occupancy_row(0.8, 0, 0)}).conclusion, Conclusion::failed);
  const auto speed = [](double faster, double slower) {
    return speed_is_not_occupancy({occupancy_row(faster, 0, 1), occupancy_row(slower, 0, 2)})
        .conclusion;
  };
  EXPECT_EQ(speed(0.2, 0.5), Conclusion::held);
  EXPECT_EQ(speed(0.5, 0.2), Conclusion::failed);
  EXPECT_EQ(speed(0.5, 0.5), Conclusion::undecided);
  EXPECT_EQ(speed_is_not_occupancy({occupancy_row(0.5, 0, 0)}).conclusion, Conclusion::undecided);
}

}  // namespace
}  // namespace strobe::lab
