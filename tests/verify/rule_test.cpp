#include "verify/rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// An oracle of ordinary values, a baseline with a known error, and ours, as good as the baseline.
struct Fixture {
  std::vector<double> oracle, baseline, ours;

  explicit Fixture(std::size_t count = 100, double error = 1e-3) {
    for (std::size_t i = 0; i < count; ++i) {
      const double value = std::sin(static_cast<double>(i));
      oracle.push_back(value);
      baseline.push_back(value + (i % 2 == 0 ? error : -error));
      ours.push_back(value + (i % 3 == 0 ? error : -error));
    }
  }

  Comparison compare_as(DType dtype, bool gradient = false) const {
    return compare({ours, baseline, oracle}, {.dtype = dtype, .gradient = gradient});
  }
};

TEST(Rule, PassesWhatIsAsGoodAsTheBaseline) {
  const Comparison result = Fixture().compare_as(DType::fp32);
  EXPECT_TRUE(result.pass()) << result.reason;
  EXPECT_NEAR(result.max_error, 1e-3, 1e-12);
  EXPECT_NEAR(result.mean_error, 1e-3, 1e-12);
  EXPECT_NEAR(result.baseline_max, 1e-3, 1e-12);
  EXPECT_NEAR(result.mean_bound, 1.5e-3, 1e-12);
}

TEST(Rule, BoundIsTwiceTheBaselineAndThriceForGradients) {
  const Fixture fixture;
  const double slack = fixture.compare_as(DType::fp32).bound - 2e-3;
  EXPECT_GT(slack, 0);
  EXPECT_LT(slack, 1e-6);
  EXPECT_NEAR(fixture.compare_as(DType::fp32, true).bound, 3e-3 + slack, 1e-12);
}

TEST(Rule, CatchesOneWrongElementAndNamesIt) {
  Fixture fixture;
  fixture.ours[42] = fixture.oracle[42] + 2.1e-3;
  const Comparison result = fixture.compare_as(DType::fp32);
  EXPECT_FALSE(result.pass());
  EXPECT_EQ(result.worst, 42);
  EXPECT_NE(result.reason.find("[42]"), std::string::npos) << result.reason;
  EXPECT_TRUE(fixture.compare_as(DType::fp32, true).pass()) << "3 times, for a gradient";
}

TEST(Rule, CatchesABiasedMeanWithinTheBound) {
  Fixture fixture;
  for (std::size_t i = 0; i < fixture.ours.size(); ++i) {
    fixture.ours[i] = fixture.oracle[i] + 1.6e-3;
  }
  const Comparison result = fixture.compare_as(DType::fp16);
  EXPECT_FALSE(result.pass());
  EXPECT_NE(result.reason.find("mean"), std::string::npos) << result.reason;
}

TEST(Rule, TheMeanMayBeOneAndAHalfTimesTheBaselines) {
  EXPECT_NEAR(Fixture().compare_as(DType::fp16, true).mean_bound, 1.5e-3, 1e-12);
  EXPECT_NEAR(Fixture().compare_as(DType::fp32, true).mean_bound, 1.5e-3, 1e-12);
  EXPECT_NEAR(Fixture().compare_as(DType::fp32, false).mean_bound, 1.5e-3, 1e-12);
}

TEST(Rule, TakesTheBaselinesErrorElsewhereIntoAccount) {
  Fixture fixture;
  fixture.ours[42] = fixture.oracle[42] + 5e-3;
  EXPECT_FALSE(fixture.compare_as(DType::fp32).pass());
  const RuleOptions options{.dtype = DType::fp32, .elsewhere = {.max = 3e-3, .mean = 1e-3}};
  EXPECT_TRUE(compare({fixture.ours, fixture.baseline, fixture.oracle}, options).pass());
}

TEST(Rule, CatchesNanWhereTheOracleIsFinite) {
  Fixture fixture;
  fixture.ours[7] = kNan;
  const Comparison result = fixture.compare_as(DType::bf16);
  EXPECT_FALSE(result.pass());
  EXPECT_EQ(result.worst, 7);
}

TEST(Rule, CatchesAMissingNan) {
  Fixture fixture;
  fixture.oracle[7] = kNan;
  fixture.baseline[7] = kNan;
  EXPECT_FALSE(fixture.compare_as(DType::fp32).pass());
  fixture.ours[7] = kNan;
  EXPECT_TRUE(fixture.compare_as(DType::fp32).pass());
}

TEST(Rule, InfinitiesMustHaveTheSameSign) {
  Fixture fixture;
  fixture.oracle[3] = fixture.baseline[3] = kInfinity;
  fixture.ours[3] = -kInfinity;
  EXPECT_FALSE(fixture.compare_as(DType::fp32).pass());
  fixture.ours[3] = kInfinity;
  EXPECT_TRUE(fixture.compare_as(DType::fp32).pass());
}

TEST(Rule, AValueBeyondTheTypeIsInfinityInIt) {
  Fixture fixture;
  fixture.oracle[3] = 1e6;
  fixture.baseline[3] = fixture.ours[3] = kInfinity;
  EXPECT_TRUE(fixture.compare_as(DType::fp16).pass()) << fixture.compare_as(DType::fp16).reason;
}

TEST(Rule, ABaselineThatIsNotFiniteWidensNoBound) {
  Fixture fixture;
  fixture.baseline[3] = kInfinity;
  fixture.ours[4] += 1;
  EXPECT_FALSE(fixture.compare_as(DType::fp32).pass());
}

TEST(Rule, ForgivesOneRoundingWhereTheBaselineIsExact) {
  Fixture fixture(100, 0);
  for (double& value : fixture.oracle) value = round_to(DType::bf16, value);
  fixture.baseline = fixture.ours = fixture.oracle;
  fixture.ours[10] += half_ulp(DType::bf16, fixture.oracle[10]);
  EXPECT_TRUE(fixture.compare_as(DType::bf16).pass()) << fixture.compare_as(DType::bf16).reason;
  for (double& value : fixture.ours) value += 2 * half_ulp(DType::bf16, value);
  EXPECT_FALSE(fixture.compare_as(DType::bf16).pass()) << "a whole unit in every element";
}

TEST(Rule, EmptyTensorsPass) {
  EXPECT_TRUE(compare({}, {}).pass());
  EXPECT_TRUE(compare_lse({}, {}, {}).pass());
}

TEST(Rule, RefusesAnswersToDifferentQuestions) {
  Fixture fixture;
  fixture.oracle.pop_back();
  EXPECT_THROW(fixture.compare_as(DType::fp32), InvalidArgument);
}

TEST(Rule, HalfUnitsInTheLastPlace) {
  EXPECT_EQ(half_ulp(DType::fp32, 1.0), std::ldexp(1.0, -24));
  EXPECT_EQ(half_ulp(DType::fp16, 1.5), std::ldexp(1.0, -11));
  EXPECT_EQ(half_ulp(DType::bf16, -2.0), std::ldexp(1.0, -7));
  EXPECT_EQ(half_ulp(DType::fp16, 0.0), std::ldexp(1.0, -25)) << "half the smallest subnormal";
}

TEST(LseRule, IsRelativeAboveOne) {
  const std::vector<double> oracle{0.5, -1000, 20};
  EXPECT_TRUE(compare_lse(std::vector<double>{0.5 + 9e-6, -1000 - 9e-3, 20}, oracle, {}).pass());
  EXPECT_FALSE(compare_lse(std::vector<double>{0.5 + 1.1e-5, -1000, 20}, oracle, {}).pass());
  const Comparison wrong =
      compare_lse(std::vector<double>{0.5 + 9e-6, -1000 - 1.1e-2, 20}, oracle, {});
  EXPECT_FALSE(wrong.pass());
  EXPECT_EQ(wrong.worst, 1);
}

TEST(LseRule, MinusInfinityExactlyWhereNothingIsSeen) {
  const std::vector<double> oracle{1, -kInfinity};
  EXPECT_TRUE(compare_lse(std::vector<double>{1, -kInfinity}, oracle, {}).pass());
  EXPECT_FALSE(compare_lse(std::vector<double>{1, -1e30}, oracle, {}).pass());
  EXPECT_FALSE(compare_lse(std::vector<double>{-kInfinity, -kInfinity}, oracle, {}).pass());
  EXPECT_FALSE(compare_lse(std::vector<double>{1, kNan}, oracle, {}).pass());
}

}  // namespace
}  // namespace strobe::lab
