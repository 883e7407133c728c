// The exponentials of NEON against those of double, with memory behind the operands that may not be
// touched.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA neon
#include "cpu/simd/neon.h"

#include "cpu/engine/neon_fma_engine.h"
#include "cpu/generic/math.h"
#include "support/fenced.h"

namespace strobe::cpu::neon {
namespace {

using test::draw;
using test::Fenced;

constexpr float kScale = 0.37F;

TEST(NeonExp, IsOffByRoundingsOfLogits) {
  for (const std::int64_t rows : {2, 4, 8, 128}) {
    Fenced x(rows * 48);
    Fenced base(48);
    Fenced sum(48);
    Fenced p(rows * 48);
    std::mt19937 random(7);
    for (int lane = 0; lane < 12; ++lane) {
      base.floats()[lane] = 4 * draw(random);
      sum.floats()[lane] = static_cast<float>(lane);
    }
    for (std::int64_t i = 0; i < rows * 12; ++i)
      x.floats()[i] = draw(random) * (i % 5 == 0 ? 50.0F : 5.0F);
    exp_rows_12(rows, x.floats(), kScale, base.floats(), sum.floats(), p.floats());
    for (int lane = 0; lane < 12; ++lane) {
      float total = 0;
      for (std::int64_t j = 0; j < rows; ++j) {
        const std::int64_t i = j * 12 + lane;
        const double logit = static_cast<double>(x.floats()[i]) * kScale;
        const double truth = std::exp(logit - static_cast<double>(base.floats()[lane]));
        const double tolerance = truth * (std::fabs(logit) + 2) * 0x1p-24 + 0x1p-149;
        ASSERT_NEAR(p.floats()[i], truth, tolerance) << x.floats()[i];
        total += p.floats()[i];
      }
      EXPECT_EQ(sum.floats()[lane], static_cast<float>(lane) + total) << rows << " rows";
    }
  }
}

TEST(NeonExp, AtTheEdges) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float x[24] = {-kInf, -1e30F, 3.0F, 1e6F, kInf, std::nanf(""), -240.0F, -232.0F};
  const float base[12] = {0, 0, 3.0F * kScale, 1e6F * kScale, 0, 0, 0, 0};
  float sum[12] = {};
  float p[24];
  exp_rows_12(2, x, kScale, base, sum, p);
  EXPECT_EQ(p[0], 0.0F);
  EXPECT_EQ(p[1], 0.0F);
  EXPECT_EQ(p[2], 1.0F);
  EXPECT_NEAR(p[3], 1.0, 0x1p-5);  // half of the last place of the base
  EXPECT_TRUE(std::isnan(p[5]));
  EXPECT_EQ(p[6], 0.0F);                                     // e^-88.8
  EXPECT_NEAR(p[7] / std::exp(-232.0 * kScale), 1.0, 1e-5);  // e^-85.8
}

TEST(NeonExp, DoesNotTakeALargeBase) {
  const float x[24] = {};
  float sum[12] = {};
  float p[24];
  constexpr float kLargest = kExpLargestBase;
  float base[12] = {kLargest, -kLargest, std::numeric_limits<float>::infinity()};
  const auto takes = [&] {
    return NeonFmaEngine::put_exponentials(PreciseExp(), 2, x, kScale, base, sum, p);
  };
  EXPECT_TRUE(takes());
  EXPECT_EQ(p[2], 0.0F);  // as of a row that saw nothing
  base[11] = 2 * kLargest;
  EXPECT_FALSE(takes());
  base[11] = -2 * kLargest;
  EXPECT_FALSE(takes());
}

// The smallest score that has a power, and so whatever is hidden, must be a number for every base.
TEST(NeonExp, TakesASmallScaleUpToWhereTheLeastScoreHasRoom) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto take = [](float scale, float(&p)[24]) {
    float x[24] = {};
    x[12] = x[13] = -kInf;
    const float base[12] = {0, kExpLargestBase, kInf, -kExpLargestBase};
    float sum[12] = {};
    return NeonFmaEngine::take_exponentials(PreciseExp(), 2, x, scale, base, sum, p);
  };
  float p[24];
  ASSERT_TRUE(take(kExpSmallestScale, p));
  EXPECT_EQ(p[0], 1.0F);
  for (const int hidden : {1, 2, 12, 13, 14}) EXPECT_EQ(p[hidden], 0.0F) << hidden;
  EXPECT_FALSE(take(kExpSmallestScale / 2, p));
  EXPECT_FALSE(take(1e-37F, p));
}

}  // namespace
}  // namespace strobe::cpu::neon
