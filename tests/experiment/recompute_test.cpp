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

/// One after the other, with the time of each.
DeviceActivity kernels(std::initializer_list<std::pair<const char*, std::int64_t>> all) {
  DeviceActivity activity;
  std::int64_t now = 0;
  for (const auto& [name, ns] : all) {
    activity.work.push_back({.name = name, .begin_ns = now, .end_ns = now + ns});
    now += ns + 5;
  }
  return activity;
}

TEST(RecomputedByKernels, IsTheSoftmaxAndTheProductBeforeIt) {
  DeviceActivity seen = kernels({{"pad_rows", 10},
                                 {"gemm", 30},
                                 {"splitk_reduce", 5},
                                 {"softmax_rows", 15},
                                 {"gemm", 30},
                                 {"gemm", 30},
                                 {"softmax_gradient_rows", 20},
                                 {"gemm", 30},
                                 {"cut_rows", 30}});
  EXPECT_DOUBLE_EQ(recomputed_by_kernels(seen).value_or(0), 50.0 / 200);
  seen.work.push_back({.kind = DeviceWork::Kind::copy, .begin_ns = 900, .end_ns = 999});
  EXPECT_DOUBLE_EQ(recomputed_by_kernels(seen).value_or(0), 50.0 / 200) << "a copy is no kernel";
}

TEST(RecomputedByKernels, IsNotKnownWhereTheyAreNotSeen) {
  EXPECT_EQ(recomputed_by_kernels({}), std::nullopt);
  EXPECT_EQ(recomputed_by_kernels(kernels({{"gemm", 30}, {"fused", 10}})), std::nullopt);
}

TEST(RecomputeRules, HoldAndFail) {
  EXPECT_EQ(tiles_are_faster({.ms = 2}, {.ms = 1}).conclusion, Conclusion::held);
  EXPECT_EQ(tiles_are_faster({.ms = 1}, {.ms = 2}).conclusion, Conclusion::failed);
  EXPECT_EQ(work_is_small({.part = 0.4}).conclusion, Conclusion::held);
  EXPECT_EQ(work_is_small({.part = 0.9}).conclusion, Conclusion::failed);
}

}  // namespace
}  // namespace strobe::lab
