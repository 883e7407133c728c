#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace strobe::lab {
namespace {

TEST(Statistics, OfKnownSamples) {
  const Statistics s = summarize(std::vector<double>{4, 1, 3, 2, 10});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 10);
  EXPECT_EQ(s.mean, 4);
  EXPECT_EQ(s.median, 3);
  EXPECT_NEAR(s.p95, 8.8, 1e-12);
  EXPECT_NEAR(s.stddev, std::sqrt(12.5), 1e-12);
}

TEST(Statistics, MedianOfAnEvenNumberIsBetween) {
  EXPECT_EQ(summarize(std::vector<double>{1, 2, 5, 100}).median, 3.5);
}

std::vector<double> up_to(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) values.push_back(i);
  return values;
}

TEST(Statistics, TheMediansIntervalIsThatOfTheTables) {
  // Ranks from the binomial table: the widest tails of at most 2.5 % each.
  EXPECT_FALSE(quantile_interval(up_to(5), 0.5));
  const struct {
    int n, low, high;
  } rows[] = {{6, 1, 6}, {10, 2, 9}, {20, 6, 15}, {50, 18, 33}, {100, 40, 61}};
  for (const auto& row : rows) {
    const auto interval = quantile_interval(up_to(row.n), 0.5);
    ASSERT_TRUE(interval) << row.n;
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
  }
  const auto many = quantile_interval(up_to(100'000), 0.5);  // where 2^-n is no longer a double
  ASSERT_TRUE(many);
  EXPECT_NEAR(many->low, 50'000 - 310, 3);
}

TEST(Statistics, ATenthNeedsMoreSamplesThanTheMedian) {
  EXPECT_FALSE(quantile_interval(up_to(35), 0.1)) << "0.9^35 is above 2.5 %";
  const auto interval = quantile_interval(up_to(100), 0.1);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 5);  // of 100 at most 4 are below it in 2.4 % of all cases
  EXPECT_EQ(interval->high, 17);
  EXPECT_FALSE(quantile_interval({}, 0.5));
}

TEST(Statistics, TheIntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937 generator(7);
  std::lognormal_distribution<double> skewed(0, 0.3);  // median 1
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples;
    for (int i = 0; i < 25; ++i) samples.push_back(skewed(generator));
    const Statistics s = summarize(samples);
    covered += s.ci95->low <= 1 && 1 <= s.ci95->high;
  }
  EXPECT_GT(covered, 0.94 * kTrials);
  EXPECT_LT(covered, 0.98 * kTrials);
}

TEST(Statistics, UncertaintyIsHalfTheIntervalInMedians) {
  const std::vector<double> samples{8, 9, 10, 10, 11, 14};
  EXPECT_DOUBLE_EQ(summarize(samples).relative_uncertainty(), 0.3);
  EXPECT_TRUE(std::isinf(summarize({}).relative_uncertainty()));
}

TEST(Statistics, OfOneSampleAndOfNone) {
  const Statistics one = summarize(std::vector<double>{7});
  EXPECT_EQ(one.min, 7);
  EXPECT_EQ(one.p95, 7);
  EXPECT_EQ(one.stddev, 0);
  EXPECT_EQ(summarize({}).mean, 0);
}

}  // namespace
}  // namespace strobe::lab
