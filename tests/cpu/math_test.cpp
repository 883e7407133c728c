// The vector mathematics, on the portable vector type; the others run the same code.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA scalar
#include "cpu/simd/scalar.h"

#include "cpu/generic/math.h"

namespace strobe::cpu::scalar {
namespace {

float exp_at(float x, float base) {
  return exp_difference(splat(x), splat(base)).v[0];
}

/// Distance from the truth in units of the float's last place.
double ulps(float value, double truth) {
  const float near = static_cast<float>(truth);
  const double unit =
      std::nextafter(std::fabs(near), std::numeric_limits<float>::infinity()) - std::fabs(near);
  return std::fabs(value - truth) / unit;
}

TEST(CpuMath, ExpIsWithinTwoUnits) {
  double worst = 0;
  for (float x = -86.0F; x < 20.0F; x += 0.00731F)
    worst = std::max(worst, ulps(exp_at(x, 0), std::exp(static_cast<double>(x))));
  EXPECT_LT(worst, 2.0);
}

// The reason for taking the difference inside: the error must not grow with the distance.
TEST(CpuMath, ExpOfADifferenceDoesNotLoseBits) {
  double worst = 0;
  for (float x = -1.0F; x < 1.0F; x += 0.0013F) {
    for (const float base : {5.3F, 9.7F, 17.9F}) {
      worst = std::max(worst, ulps(exp_at(x, base), std::exp(static_cast<double>(x) - base)));
    }
  }
  EXPECT_LT(worst, 2.0);
}

TEST(CpuMath, ExpAtTheEdges) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_at(3.7F, 3.7F), 1.0F);
  EXPECT_EQ(exp_at(-kInf, 0.0F), 0.0F);
  EXPECT_EQ(exp_at(1.0F, kInf), 0.0F);
  EXPECT_EQ(exp_at(-60000.0F, 0.0F), 0.0F);
  EXPECT_EQ(exp_at(-60000.0F, -60000.0F), 1.0F);
  EXPECT_TRUE(std::isnan(exp_at(std::nanf(""), 0.0F)));
  EXPECT_TRUE(std::isnan(exp_at(kInf, kInf)));
}

/// NaN of other bits than the usual ones: an exponent added to them would make a number of them.
std::vector<float> many_nans() {
  std::vector<float> nans;
  for (std::uint32_t low = 0; low < 0x400; ++low) {
    for (const std::uint32_t high : {0x7FC00000U, 0x7FFFFC00U, 0xFFC00000U, 0xFFFFFC00U})
      nans.push_back(std::bit_cast<float>(high | low));
  }
  return nans;
}

TEST(CpuMath, ExponentialsKeepEveryNaN) {
  for (const float nan : many_nans()) {
    const auto bits = std::bit_cast<std::uint32_t>(nan);
    ASSERT_TRUE(std::isnan(exp_at(nan, 0.0F))) << std::hex << bits;
    ASSERT_TRUE(std::isnan(exp_at(0.0F, nan))) << std::hex << bits;
    ASSERT_TRUE(std::isnan(exp2_short(splat(nan)).v[0])) << std::hex << bits;
    ASSERT_TRUE(std::isnan(tanh(splat(nan)).value.v[0])) << std::hex << bits;
    ASSERT_TRUE(std::isnan(tanh(splat(nan)).slope.v[0])) << std::hex << bits;
  }
}

TEST(CpuMath, ShortPowersAtTheEdges) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp2_short(splat(0.0F)).v[0], 1.0F);
  EXPECT_EQ(exp2_short(splat(-126.0F)).v[0], 0x1p-126F);
  EXPECT_EQ(exp2_short(splat(127.0F)).v[0], 0x1p127F);
  EXPECT_EQ(exp2_short(splat(-126.1F)).v[0], 0.0F);
  EXPECT_EQ(exp2_short(splat(-kInf)).v[0], 0.0F);
}

TEST(CpuMath, ALogIsAddedWithLittleMoreThanOneRounding) {
  double worst = 0;
  for (float x = 1e-4F; x < 1e30F; x *= 1.0137F) {
    for (const float base : {-300.0F, -11.7F, 0.0F, 3.3F, 90.0F, 5000.0F}) {
      const double truth = base + std::log(static_cast<double>(x));
      if (std::fabs(truth) < 0.5) continue;
      worst = std::max(worst, ulps(add_log(splat(base), splat(x)).v[0], truth));
    }
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(add_log(splat(7.5F), splat(1.0F)).v[0], 7.5F);
  EXPECT_NEAR(add_log(splat(-1.0F), splat(2.7182818F)).v[0], 0.0F, 1e-7F);
  EXPECT_TRUE(std::isnan(add_log(splat(1.0F), splat(std::nanf(""))).v[0]));
}

TEST(CpuMath, TanhAndItsSlopeAreRelativelyExact) {
  double worst_value = 0;
  double worst_slope = 0;
  for (float x = 1e-6F; x < 30.0F; x *= 1.0007F) {
    const Tanh up = tanh(splat(x));
    const Tanh down = tanh(splat(-x));
    const double cosh = std::cosh(static_cast<double>(x));
    worst_value = std::max(worst_value, ulps(up.value.v[0], std::tanh(static_cast<double>(x))));
    worst_slope = std::max(worst_slope, ulps(up.slope.v[0], 1.0 / (cosh * cosh)));
    EXPECT_EQ(down.value.v[0], -up.value.v[0]);
    EXPECT_EQ(down.slope.v[0], up.slope.v[0]);
  }
  EXPECT_LT(worst_value, 3.0);
  EXPECT_LT(worst_slope, 6.0);
}

TEST(CpuMath, TanhAtTheEdges) {
  EXPECT_EQ(tanh(splat(0.0F)).value.v[0], 0.0F);
  EXPECT_EQ(tanh(splat(0.0F)).slope.v[0], 1.0F);
  EXPECT_EQ(tanh(splat(std::numeric_limits<float>::infinity())).value.v[0], 1.0F);
  EXPECT_TRUE(std::isnan(tanh(splat(std::nanf(""))).value.v[0]));
}

}  // namespace
}  // namespace strobe::cpu::scalar
