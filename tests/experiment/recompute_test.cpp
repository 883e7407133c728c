#include "experiment/recompute.h"

#include <gtest/gtest.h>

#include "experiment/conclusions.h"
#include "experiment/phases.h"

namespace strobe::lab {
namespace {

using test::conclusion_of;

RecordedSpan span(const char* category, const char* name, std::int64_t begin, std::int64_t end) {
  return {.category = category, .name = name, .begin_ns = begin, .end_ns = end};
}

TEST(Phases, AreThoseOfTheLastCall) {
  Recording recording(2);
  recording[0].spans = {span("laboratory", "first call", 0, 10), span("cpu", "cold", 1, 9),
                        span("laboratory", "call", 20, 2'000'020),
                        span("cpu", "scores", 30, 1'000'030),
                        span("cpu", "softmax", 1'000'040, 1'500'040)};
  recording[1].spans = {span("cpu", "scores", 31, 500'000)};
  const std::vector<PhaseTime> phases = phases_of_a_call(recording);
  ASSERT_EQ(phases.size(), 2u) << "another thread does a share of the same";
  EXPECT_EQ(phases[0].name, "scores");
  EXPECT_DOUBLE_EQ(phases[0].ms, 1);
  EXPECT_DOUBLE_EQ(phases[1].ms, 0.5);
  EXPECT_TRUE(phases_of_a_call({}).empty());
}

TEST(Recompute, ComparesThreeWaysToComeByTheWeights) {
  const Findings findings = recompute_experiment(test::small_setup("b1 sq128 h2 d16 fp32"));
  test::expect_whole(findings);
  ASSERT_EQ(findings.results.size(), 3u);
  const auto &kept = findings.results[0], &whole = findings.results[1],
             &tiles = findings.results[2];
  EXPECT_LT(kept["ms"].get<double>(), whole["ms"].get<double>()) << "it is a part of it";
  EXPECT_EQ(kept["kept"], 2 * 128 * 128 * 4);
  EXPECT_EQ(tiles["kept"], 2 * 128 * 4);
  EXPECT_EQ(conclusion_of(findings, "far less"), Conclusion::held);
  EXPECT_EQ(findings.timed.size(), 2u);
}

TEST(Recompute, KeepsAsMuchWhereSequencesAreShort) {
  const Findings findings = recompute_experiment(test::small_setup("b1 sq8 h2 d16 fp32"));
  EXPECT_EQ(conclusion_of(findings, "far less"), Conclusion::failed);
}

TEST(RecomputeRules, HoldAndFail) {
  EXPECT_EQ(tiles_are_faster({.ms = 2}, {.ms = 1}).conclusion, Conclusion::held);
  EXPECT_EQ(tiles_are_faster({.ms = 1}, {.ms = 2}).conclusion, Conclusion::failed);
  EXPECT_EQ(work_is_small({.part = 0.4}).conclusion, Conclusion::held);
  EXPECT_EQ(work_is_small({.part = 0.9}).conclusion, Conclusion::failed);
}

}  // namespace
}  // namespace strobe::lab
