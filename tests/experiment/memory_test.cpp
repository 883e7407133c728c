#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/conclusions.h"

namespace strobe::lab {
namespace {

using test::conclusion_of;

std::int64_t longest(const Findings& findings, const std::string& implementation, bool ran) {
  std::int64_t length = 0;
  for (const nlohmann::json& row : findings.results) {
    if (row["implementation"] == implementation && row["ran"] == ran)
      length = std::max(length, row["length"].get<std::int64_t>());
  }
  return length;
}

TEST(Memory, ClimbsToWhereTheUnfusedOneRunsOut) {
  ExperimentSetup setup = test::small_setup("sq64 h1 d16 fp32");
  setup.memory_limit = 8'000'000;
  const Findings findings = memory_experiment(setup);
  test::expect_whole(findings);
  EXPECT_EQ(conclusion_of(findings, "flash attention goes on"), Conclusion::held);
  EXPECT_GT(longest(findings, "flash", true), longest(findings, "standard", true));
  const std::int64_t refused = longest(findings, "standard", false);
  EXPECT_EQ(refused, 2 * longest(findings, "standard", true)) << "and then it is not tried again";
  for (const nlohmann::json& row : findings.results) {
    EXPECT_EQ(row["ran"].get<bool>(), row["planned"].get<std::int64_t>() <= setup.memory_limit);
    if (!row["ran"].get<bool>()) {
      EXPECT_TRUE(row["seen"].is_null()) << row;
    }
  }
}

TEST(Memory, RefusesWhatDoesNotFitAtAll) {
  ExperimentSetup setup = test::small_setup("sq64 h1 d16 fp32");
  setup.memory_limit = 1000;
  const Findings findings = memory_experiment(setup);
  EXPECT_EQ(longest(findings, "flash", true), 0);
  EXPECT_EQ(conclusion_of(findings, "flash attention goes on"), Conclusion::failed);
  EXPECT_EQ(conclusion_of(findings, "square of the length"), Conclusion::undecided);
  EXPECT_EQ(conclusion_of(findings, "behind the plan's back"), Conclusion::undecided);
}

TEST(Memory, RowsThatOutweighTheScoresDoNotGrowWithTheSquare) {
  ExperimentSetup setup = test::small_setup("sq2 h1 d512 fp32");
  setup.options.threads = 1;  // each has buffers of its own, which for tiles take megabytes
  setup.memory_limit = 3'000'000;
  const Findings findings = memory_experiment(setup);
  EXPECT_EQ(conclusion_of(findings, "square of the length"), Conclusion::failed);
}

}  // namespace
}  // namespace strobe::lab
