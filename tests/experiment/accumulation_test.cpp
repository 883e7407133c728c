#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "experiment/conclusions.h"
#include "experiment/summation.h"

namespace strobe::lab {
namespace {

using test::conclusion_of;

TEST(Summation, IsExactWhereEverySumIs) {
  std::vector<float> terms(100);
  std::iota(terms.begin(), terms.end(), 1.0F);
  for (const SumOrder order : kSumOrders) EXPECT_EQ(sum_in(DType::fp32, order, terms), 5050);
  for (const SumOrder order : kSumOrders) EXPECT_EQ(sum_in(DType::fp32, order, {}), 0);
}

TEST(Summation, StopsWhereATermIsLessThanHalfTheLastPlace) {
  const std::vector<float> ones(1000, 1.0F);
  EXPECT_EQ(sum_in(DType::bf16, SumOrder::sequential, ones), 256);
  EXPECT_EQ(sum_in(DType::bf16, SumOrder::pairwise, ones), 1000);
  EXPECT_EQ(sum_in(DType::bf16, SumOrder::kahan, ones), 1000);
  EXPECT_EQ(sum_in(DType::fp16, SumOrder::sequential, ones), 1000);
}

TEST(Summation, BlocksBeginFromZero) {
  // 128 times 2 is 256, which bf16 has; in order, 256 + 2 is between two of its numbers.
  const std::vector<float> twos(256, 2.0F);
  EXPECT_EQ(sum_in(DType::bf16, SumOrder::blocked, twos), 512);
}

TEST(Accumulation, LongSumsShowWhatWasExpected) {
  const Findings findings = accumulation_experiment(test::small_setup(""));
  test::expect_whole(findings);
  EXPECT_TRUE(findings.all_held()) << findings_text(find_experiment("accumulation"), findings);
  EXPECT_EQ(findings.results.size(), 12u) << "three types, four orders";
  EXPECT_NE(findings.tables.find("9.9531"), std::string::npos) << findings.tables;
}

TEST(Accumulation, ShortSumsDoNot) {
  const Findings findings = accumulation_experiment(test::small_setup("sq1 sk4 d8 bf16"));
  EXPECT_EQ(conclusion_of(findings, "stops growing"), Conclusion::failed);
  EXPECT_EQ(conclusion_of(findings, "in pairs"), Conclusion::failed);
  EXPECT_EQ(conclusion_of(findings, "Kahan"), Conclusion::failed);
  const Findings single = accumulation_experiment(test::small_setup("sq1 sk1 d1 bf16"));
  EXPECT_EQ(conclusion_of(single, "needs sums in fp32"), Conclusion::failed)
      << "a sum of one term has nothing to add";
}

}  // namespace
}  // namespace strobe::lab
