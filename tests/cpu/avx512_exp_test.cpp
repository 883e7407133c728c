// The exponentials of AVX-512 against those of double, with memory behind the operands that may not
// be touched.
#include "cpu/avx512_exp.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/has_isa.h"
#include "support/fenced.h"

namespace strobe::cpu::avx512_exp {
namespace {

using test::draw;
using test::Fenced;

using Exponentials = decltype(&precise);

constexpr float kScale = 0.37F;
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Relative to the truth, beside what the rounding of a logit makes of it.
void expect_within(Exponentials exponentials, double error, double logit_error) {
  for (const std::int64_t rows : {4, 8, 128}) {
    Fenced x(rows * kLanes * 4);
    Fenced base(kLanes * 4);
    Fenced sum(kLanes * 4);
    Fenced p(rows * kLanes * 4);
    std::mt19937 random(7);
    for (int lane = 0; lane < kLanes; ++lane) {
      base.floats()[lane] = 4 * draw(random);
      sum.floats()[lane] = static_cast<float>(lane);
    }
    for (std::int64_t i = 0; i < rows * kLanes; ++i)
      x.floats()[i] = draw(random) * (i % 5 == 0 ? 50.0F : 5.0F);
    exponentials(rows, x.floats(), kScale, base.floats(), sum.floats(), p.floats());
    for (int lane = 0; lane < kLanes; ++lane) {
      double total = lane;
      for (std::int64_t j = 0; j < rows; ++j) {
        const std::int64_t i = j * kLanes + lane;
        const double logit = static_cast<double>(x.floats()[i]) * kScale;
        const double truth = std::exp(logit - static_cast<double>(base.floats()[lane]));
        ASSERT_NEAR(p.floats()[i], truth, truth * (std::fabs(logit) * logit_error + error))
            << x.floats()[i];
        total += p.floats()[i];
      }
      EXPECT_NEAR(sum.floats()[lane], total, total * 0x1p-20) << rows << " rows";
    }
    exponentials(rows, x.floats(), kScale, base.floats(), sum.floats(), x.floats());  // in place
    for (std::int64_t i = 0; i < rows * kLanes; ++i) EXPECT_EQ(x.floats()[i], p.floats()[i]);
  }
}

TEST(Avx512Exp, IsOffByRoundingsOfLogits) {
  if (!has_isa("avx512")) GTEST_SKIP() << "this CPU has no avx512";
  expect_within(precise, 2 * 0x1p-24, 2 * 0x1p-24);
}

TEST(Avx512Exp, OfSixteenBitsIsOffByAThreeMillionth) {
  if (!has_isa("avx512")) GTEST_SKIP() << "this CPU has no avx512";
  expect_within(brief, 5e-6, 0x1p-22);
}

TEST(Avx512Exp, AtTheEdges) {
  if (!has_isa("avx512")) GTEST_SKIP() << "this CPU has no avx512";
  const float strange_nan = std::bit_cast<float>(0xFFC00001U);
  const float x[4 * kLanes] = {-kInf,   -1e30F, 3.0F,          3e38F,       -240.0F,
                               -232.0F, 5.0F,   std::nanf(""), strange_nan, -kInf};
  const float base[kLanes] = {0, 0, 3.0F * kScale, 3e38F * kScale, 0, 0, kInf, 0, 0, kInf};
  for (const Exponentials each : {precise, brief}) {
    float sum[kLanes] = {};
    float p[4 * kLanes];
    each(4, x, kScale, base, sum, p);
    EXPECT_EQ(p[0], 0.0F);
    EXPECT_EQ(p[1], 0.0F);
    EXPECT_NEAR(p[2], 1.0F, each == precise ? 0.0 : 1e-6);
    if (each == precise) {
      EXPECT_EQ(p[3], 1.0F);
    }
    EXPECT_NEAR(p[4], 0.0F, 1e-38);                            // e^-88.8
    EXPECT_NEAR(p[5] / std::exp(-232.0 * kScale), 1.0, 1e-4);  // e^-85.8
    EXPECT_EQ(p[6], 0.0F);                                     // of a row that saw nothing
    EXPECT_TRUE(std::isnan(p[7]));
    EXPECT_TRUE(std::isnan(p[8]));
    EXPECT_EQ(p[9], 0.0F);
  }
}

}  // namespace
}  // namespace strobe::cpu::avx512_exp
