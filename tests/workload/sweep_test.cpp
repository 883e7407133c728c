#include "workload/sweep.h"

#include <gtest/gtest.h>

#include <set>

#include "strobe/error.h"
#include "workload/estimate.h"
#include "workload/sweep_preset.h"

namespace strobe::lab {
namespace {

std::vector<std::string> names(const std::vector<Grid>& grids) {
  std::vector<std::string> all;
  for (const Point& point : points_of(grids)) all.push_back(point.name());
  return all;
}

/// A grid of small problems.
Grid small_grid() {
  return {.axes = {{"batch", {"1", "2"}},
                   {"seqlen", {"64"}},
                   {"nheads", {"2"}},
                   {"headdim", {"16", "32"}}},
          .passes = {Pass::forward},
          .implementations = {"flash"}};
}

TEST(Sweep, BatchVariesFastestThenPassThenImplementation) {
  Grid grid = small_grid();
  EXPECT_EQ(names({grid}), (std::vector<std::string>{
                               "flash on b1 sq64 h2 d16 fp32", "flash on b2 sq64 h2 d16 fp32",
                               "flash on b1 sq64 h2 d32 fp32", "flash on b2 sq64 h2 d32 fp32"}));
  set_axis(grid, {"batch", {"1"}});
  set_axis(grid, {"headdim", {"16"}});
  grid.passes = {Pass::forward, Pass::backward};
  grid.implementations = {"standard", "flash"};
  EXPECT_EQ(names({grid}),
            (std::vector<std::string>{
                "standard on b1 sq64 h2 d16 fp32", "flash on b1 sq64 h2 d16 fp32",
                "standard on b1 sq64 h2 d16 fp32 bwd", "flash on b1 sq64 h2 d16 fp32 bwd"}));
}

TEST(Sweep, NoPointComesTwice) {
  EXPECT_EQ(points_of(std::vector{small_grid(), small_grid()}).size(), 4u);
  Grid grid = small_grid();
  set_axis(grid, {"batch", {"2", "tokens/128"}});
  EXPECT_EQ(points_of(std::vector{grid}).size(), 2u) << "128 tokens are a batch of 2";
  EXPECT_EQ(points_of(std::vector{Grid{}}).size(), 2u) << "the default problem, both passes";
}

template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

TEST(Sweep, ACombinationThatIsNoProblemIsRefusedByName) {
  Grid grid = small_grid();
  set_axis(grid, {"kv-heads", {"1", "3"}});
  expect_parts(refusal([&] { points_of(std::vector{grid}); }),
               {"--kv-heads is 3", "kv-heads 3, nheads 2"});
  set_axis(grid, {"kv-heads", {"nheads/4"}});
  expect_parts(refusal([&] { points_of(std::vector{grid}); }), {"--kv-heads", "seqlen 64"});
  const std::vector<std::string> many(1000, "1");
  const Grid huge{.axes = {{"batch", many}, {"seqlen", many}}};
  expect_parts(refusal([&] { points_of(std::vector{huge}); }),
               {"--batch, --seqlen", "2000000 points", "100000"});
}

TEST(Sweep, WhatDoesNotFitIsRefusedByItsLargestPoint) {
  const auto points = points_of(std::vector{small_grid()});
  EXPECT_EQ(refusal([&] { require_memory(points, operand_bytes(points[3])); }), "");
  EXPECT_EQ(refusal([&] { require_memory(points, 0); }), "") << "not known";
  expect_parts(refusal([&] { require_memory(points, operand_bytes(points[3]) - 1); }),
               {"b2 sq64 h2 d32 fp32", "GB"});
  Grid huge = small_grid();
  set_axis(huge, {"batch", {"1000000"}});
  set_axis(huge, {"seqlen", {"1000000000"}});
  expect_parts(refusal([&] { require_memory(points_of(std::vector{huge}), 1); }), {"b1000000"});
}

TEST(Sweep, ShortensEveryLength) {
  Grid grid = small_grid();
  set_axis(grid, {"batch", {"tokens/256"}});
  EXPECT_EQ(
      names({shortened(grid, 4)}),
      (std::vector<std::string>{"flash on b4 sq16 h2 d16 fp32", "flash on b4 sq16 h2 d32 fp32"}));
  expect_parts(refusal([&] { shortened(grid, 3); }), {"--shrink is 3", "256 of --batch"});
  expect_parts(refusal([&] { shortened(Grid{}, 2); }), {"--shrink", "--seqlen"});
}

constexpr Pace kPace{.flops_per_second = 1e11, .budget_s = 1, .least_runs = 5, .most_runs = 32};

TEST(Estimate, CountsTheRunsOfAPoint) {
  const Point small{Problem::parse("b1 sq16 h1 d16 fp32"), "flash"};
  EXPECT_LT(estimated_seconds(small, kPace), 0.1);
  // 4 * 16384^2 * 64 FLOPs at a quarter of the rate, five times, and the check.
  const Point large{Problem::parse("b1 sq16384 h1 d64 fp32"), "flash"};
  EXPECT_NEAR(estimated_seconds(large, kPace), 5 * 6.87e10 / 2.5e10 + 1.5, 0.1);
  const Point slower{large.problem, "standard"};
  EXPECT_GT(estimated_seconds(slower, kPace), 4 * estimated_seconds(large, kPace));
  Pace patient = kPace;
  patient.budget_s = 60;
  EXPECT_GT(estimated_seconds(large, patient), 60) << "as many runs as the budget allows";
  EXPECT_DOUBLE_EQ(estimated_seconds(std::vector{large, large}, kPace),
                   2 * estimated_seconds(large, kPace));
}

TEST(Estimate, ShrinksUntilTimeAndMemoryAreEnough) {
  const std::vector grids{small_grid()};
  EXPECT_EQ(fitting_shrink(grids, kPace, 0, 120), 1);
  EXPECT_EQ(fitting_shrink(grids, kPace, 0, 0), 4) << "no length below 16";
  const auto bytes = operand_bytes(points_of(grids)[3]);
  EXPECT_EQ(fitting_shrink(grids, kPace, bytes, 120), 1);
  EXPECT_EQ(fitting_shrink(grids, kPace, bytes - 1, 120), 2);
}

TEST(SweepPreset, EachIsASweepThatFitsASmallMachine) {
  for (const SweepPreset& preset : sweep_presets()) {
    EXPECT_EQ(&find_sweep_preset(preset.name), &preset);
    const std::int64_t by = fitting_shrink(preset.grids, kPace, 8'000'000'000, 120);
    EXPECT_GT(by, 1) << preset.name;
    std::vector<Grid> shorter;
    for (const Grid& grid : preset.grids) shorter.push_back(shortened(grid, by));
    EXPECT_LE(estimated_seconds(points_of(shorter), kPace), 120) << preset.name;
  }
  expect_parts(refusal([] { find_sweep_preset("table"); }),
               {"--preset is 'table'", "throughput-table, attention-grid, paper"});
}

TEST(SweepPreset, HoldsThePublishedPoints) {
  const auto table = points_of(find_sweep_preset("throughput-table").grids);
  EXPECT_EQ(table.size(), 18u);
  EXPECT_EQ(table.back().problem.text(), "b2 sq65536 h16 d128 fp32 qkvpacked causal bwd");
  EXPECT_EQ(points_of(find_sweep_preset("attention-grid").grids).size(), 4u * 5 * 2 * 2);
  const auto paper = points_of(find_sweep_preset("paper").grids);
  EXPECT_EQ(paper.size(), 6u * 3 * 2 * 2);
  for (const Point& point : paper) {
    EXPECT_EQ(point.problem.total_q(), 16384);
    EXPECT_EQ(point.problem.heads * point.problem.dim, 2048);
  }
}

}  // namespace
}  // namespace strobe::lab
