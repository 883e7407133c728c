#include <gtest/gtest.h>

#include "experiment/conclusions.h"
#include "experiment/subjects.h"
#include "experiment/traffic.h"
#include "report/trace_format.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

using test::conclusion_of;

TEST(TrafficModel, CountsEveryMatrixOnItsWay) {
  const Problem problem = Problem::parse("b2 sq128 h4 d16 fp32");
  const double operand = 2 * 128 * 4 * 16 * 4, scores = 2.0 * 4 * 128 * 128 * 4,
               lse = 2 * 128 * 4 * 4;
  const Traffic unfused = total_of(unfused_traffic(problem));
  EXPECT_EQ(unfused.read, 3 * operand + 2 * scores);
  EXPECT_EQ(unfused.written, 2 * scores + lse + operand);
  const Traffic flash = flash_traffic(problem, 32);
  EXPECT_EQ(flash.read, operand + 4 * 2 * operand) << "keys and values for each of four blocks";
  EXPECT_EQ(flash.written, operand + lse);
  EXPECT_EQ(flash_traffic(problem, 1024).read, 3 * operand) << "never less than once";
}

TEST(TrafficModel, MasksHideBytesToo) {
  const Problem all = Problem::parse("sq1024 h1 d16 fp32"),
                half = Problem::parse("sq1024 h1 d16 fp32 causal");
  const auto ratio =
      total_of(unfused_traffic(half)).total() / total_of(unfused_traffic(all)).total();
  EXPECT_GT(ratio, 0.5);
  EXPECT_LT(ratio, 0.52);
  EXPECT_LT(flash_traffic(half, 64).read, flash_traffic(all, 64).read);
}

TEST(TrafficModel, ReadsTilesFromPlans) {
  EXPECT_EQ(query_rows_of({{"kernel", "hopper_forward"}, {"tile", "192x128"}}), 192);
  EXPECT_EQ(query_rows_of({{"query_rows", "512"}}), 512);
  EXPECT_EQ(query_rows_of({{"isa", "neon"}}), 0);
}

TEST(Fusion, LooksAtBothFromEverySide) {
  const Findings findings = fusion_experiment(test::small_setup("b1 sq512 h8 d16 fp32"));
  test::expect_whole(findings);
  EXPECT_EQ(conclusion_of(findings, "one kernel"), Conclusion::held);
  EXPECT_EQ(conclusion_of(findings, "fewer bytes"), Conclusion::held);
  EXPECT_EQ(conclusion_of(findings, "less time"), Conclusion::undecided)
      << "two samples have no interval";
  ASSERT_EQ(findings.timed.size(), 2u);
  EXPECT_EQ(findings.timed[0].fields["kernels"], 1);
  EXPECT_GE(findings.timed[1].fields["kernels"], 3);
  for (const char* name : {"trace_flash.json", "trace_unfused.json"}) {
    const auto file = std::find_if(findings.files.begin(), findings.files.end(),
                                   [&](const ExperimentFile& each) { return each.name == name; });
    ASSERT_NE(file, findings.files.end());
    test::expect_chrome_trace(nlohmann::json::parse(file->text));
  }
}

TEST(Fusion, SavesNothingWhereRowsAreLongerThanSequences) {
  const Findings findings = fusion_experiment(test::small_setup("b1 sq8 h2 d128 fp32"));
  EXPECT_EQ(conclusion_of(findings, "fewer bytes"), Conclusion::failed);
  EXPECT_FALSE(findings.all_held());
}

TEST(Fusion, SeesThatSplitKeysTakeASecondPhase) {
  const Findings findings = fusion_experiment(test::small_setup("b1 sq1 sk4096 h1 d16 fp32"));
  EXPECT_EQ(conclusion_of(findings, "one kernel"), Conclusion::failed);
}

TEST(Subjects, AreFasterOnlyWhereIntervalsSaySo) {
  const auto timed = [](double low, double high) {
    Benchmark result;
    result.measurement.ms.ci95 = Interval{low, high};
    return result;
  };
  EXPECT_EQ(is_faster(timed(1, 2), timed(3, 4)), Conclusion::held);
  EXPECT_EQ(is_faster(timed(3, 4), timed(1, 2)), Conclusion::failed);
  EXPECT_EQ(is_faster(timed(1, 3), timed(2, 4)), Conclusion::undecided);
  EXPECT_EQ(is_faster({}, timed(2, 4)), Conclusion::undecided);
}

TEST(Subjects, FitWhatMayBeTaken) {
  const auto bytes = [](const Problem& p) { return p.batch * p.heads * 100; };
  ExperimentSetup setup{.memory_limit = 1000};
  const Problem usual{.batch = 4, .seqlen_q = 8, .heads = 16};
  EXPECT_EQ(fitting_problem(setup, usual, bytes).text(), "b1 sq8 h8 d64 bf16");
  setup.choose_problem = [](const Problem& p) {
    Problem wanted = p;
    wanted.heads = 32;
    return wanted;
  };
  EXPECT_THROW(fitting_problem(setup, usual, bytes), OutOfMemory) << "what users say is kept";
}

}  // namespace
}  // namespace strobe::lab
