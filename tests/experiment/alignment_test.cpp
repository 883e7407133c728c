#include "experiment/alignment.h"

#include <gtest/gtest.h>

#include "experiment/conclusions.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

TEST(Alignment, TimesTheDimAndItsNeighbours) {
  const Findings findings = alignment_experiment(test::small_setup("b1 sq32 h1 d16 fp16"));
  test::expect_whole(findings);
  ASSERT_EQ(findings.timed.size(), 3u);
  std::vector<std::int64_t> dims, loads;
  for (const TimedRow& row : findings.timed) {
    dims.push_back(row.benchmark.problem.dim);
    loads.push_back(row.fields["load_bytes"]);
  }
  EXPECT_EQ(dims, (std::vector<std::int64_t>{16, 17, 24}));
  EXPECT_EQ(loads, (std::vector<std::int64_t>{16, 2, 16})) << "of fp16, 17 are 34 bytes";
  for (const Expectation& each : findings.expectations)
    EXPECT_NE(each.conclusion, Conclusion::undecided) << each.expected;
}

TEST(Alignment, LooksFurtherWhereThereIsTime) {
  ExperimentSetup setup = test::small_setup("b1 sq16 h1 d64 fp32");
  setup.quick = false;
  const Findings findings = alignment_experiment(setup);
  EXPECT_EQ(findings.timed.size(), 12u);
  EXPECT_EQ(findings.timed.front().benchmark.problem.dim, 32);
  EXPECT_EQ(findings.timed.back().benchmark.problem.dim, 96);
  EXPECT_EQ(findings.timed.front().benchmark.measurement.samples_ms.size(), 6u)
      << "two samples of each of three rounds";
}

TEST(Alignment, RefusesADimWithoutNeighbours) {
  try {
    alignment_experiment(test::small_setup("b1 sq16 h1 d512 fp32"));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("504"), std::string::npos) << error.what();
  }
}

TEST(AlignmentRules, HoldAndFail) {
  const auto row = [](double ms) {
    AlignmentRow timed;
    timed.result.measurement.ms.median = ms;
    timed.result.flops = 1;
    return timed;
  };
  EXPECT_EQ(small_drop(row(10), row(11)).conclusion, Conclusion::held);
  EXPECT_EQ(small_drop(row(10), row(13)).conclusion, Conclusion::failed);
  EXPECT_EQ(as_dear_as_the_next(row(10), row(9.5)).conclusion, Conclusion::held);
  EXPECT_EQ(as_dear_as_the_next(row(10), row(8)).conclusion, Conclusion::failed);
  EXPECT_EQ(as_dear_as_the_next(row(8), row(10)).conclusion, Conclusion::failed);
}

}  // namespace
}  // namespace strobe::lab
