#include <gtest/gtest.h>

#include "experiment/cache_simulator.h"
#include "experiment/conclusions.h"
#include "experiment/growth.h"
#include "experiment/tiled_attention.h"

namespace strobe::lab {
namespace {

using test::conclusion_of;
constexpr std::int64_t kLine = CacheSimulator::kLineBytes;

TEST(CacheSimulator, KeepsWhatWasUsedLast) {
  CacheSimulator cache(2 * kLine);
  cache.read(0, kLine);
  cache.read(kLine, kLine);
  cache.read(0, kLine);
  EXPECT_EQ(cache.traffic().read, 2 * kLine) << "the third is there already";
  cache.read(2 * kLine, kLine);
  cache.read(0, kLine);
  EXPECT_EQ(cache.traffic().read, 3 * kLine) << "the second line went, for it was used longest ago";
  cache.read(kLine, kLine);
  EXPECT_EQ(cache.traffic().read, 4 * kLine);
  EXPECT_EQ(cache.traffic().written, 0);
}

TEST(CacheSimulator, WritesBackOnceWhatWasChanged) {
  CacheSimulator cache(2 * kLine);
  for (int i = 0; i < 3; ++i) cache.write(0, kLine);
  EXPECT_EQ(cache.traffic().written, kLine) << "in the end";
  EXPECT_EQ(cache.traffic().read, 0) << "whole lines are not fetched to be written";
  cache.read(kLine, 2 * kLine);
  EXPECT_EQ(cache.traffic().written, kLine) << "it has gone, and is not written twice";
}

TEST(CacheSimulator, TouchesEveryLineOfARange) {
  CacheSimulator cache(100 * kLine);
  cache.read(kLine - 4, 8);
  EXPECT_EQ(cache.traffic().read, 2 * kLine);
}

TEST(GrowthExponent, IsTheSlopeOnLogAxes) {
  EXPECT_NEAR(growth_exponent({{1, 3}, {2, 12}, {4, 48}}), 2, 1e-12);
  EXPECT_NEAR(growth_exponent({{8, 5}, {16, 2.5}}), -1, 1e-12);
  EXPECT_EQ(growth_exponent({{8, 5}}), 0);
  EXPECT_EQ(growth_exponent({}), 0);
}

TEST(TiledAttentionModel, ReadsEverythingOnceFromALargeCache) {
  const auto shape = TiledAttention::fitting(64, 32, 1 << 20);
  EXPECT_EQ(shape.tile, 64);
  const double matrix = 64 * 32 * 4;
  EXPECT_EQ(shape.simulated_flash(1 << 20).read, 3 * matrix);
  EXPECT_EQ(shape.simulated_flash(1 << 20).written, matrix);
}

TEST(TiledAttentionModel, TilesThatDoNotFitContradictTheTheory) {
  const TiledAttention shape{.length = 128, .dim = 64, .tile = 32};
  EXPECT_GT(shape.simulated_flash(4096).total(), 1.5 * shape.predicted_flash().total());
}

TEST(IoModel, HoldsWhereTilesFit) {
  const Findings findings = io_model_experiment(test::small_setup("sq512 h1 d64 fp32"));
  test::expect_whole(findings);
  EXPECT_TRUE(findings.all_held()) << findings_text(find_experiment("io-model"), findings);
  EXPECT_EQ(findings.results.size(), 16u);
}

TEST(IoModel, FailsWhereTheyDoNot) {
  const Findings findings = io_model_experiment(test::small_setup("sq128 h1 d512 fp32"));
  EXPECT_EQ(conclusion_of(findings, "theory says"), Conclusion::failed);
  EXPECT_EQ(conclusion_of(findings, "flash attention saves"), Conclusion::failed);
}

TEST(IoModel, DecidesNothingBySizesThatTheChipHolds) {
  const Findings findings = io_model_experiment(test::small_setup("sq16 h1 d8 fp32"));
  EXPECT_EQ(conclusion_of(findings, "theory says"), Conclusion::undecided);
  EXPECT_EQ(conclusion_of(findings, "half as much"), Conclusion::failed);
  EXPECT_EQ(conclusion_of(findings, "square of the length"), Conclusion::failed);
}

}  // namespace
}  // namespace strobe::lab
