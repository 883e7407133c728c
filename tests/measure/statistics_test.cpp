#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Statistics, OfOneSampleAndOfNone) {
  const Statistics one = summarize(std::vector<double>{7});
  EXPECT_EQ(one.min, 7);
  EXPECT_EQ(one.p95, 7);
  EXPECT_EQ(one.stddev, 0);
  EXPECT_EQ(summarize({}).mean, 0);
}

}  // namespace
}  // namespace strobe::lab
