// The fp32 tiles of NEON against plain loops, with memory behind the operands that may not be
// touched.
#include <gtest/gtest.h>

#include <cmath>

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA neon
#include "cpu/simd/neon.h"

#include "cpu/engine/neon_fma.h"
#include "support/fenced.h"

namespace strobe::cpu::neon {
namespace {

using test::draw;
using test::Fenced;

class Floats {
 public:
  Floats(std::int64_t count, unsigned seed) : memory_(count * 4) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < count; ++i) memory_.floats()[i] = draw(random);
  }
  const float* data() const { return memory_.floats(); }
  double operator[](std::int64_t i) const { return memory_.floats()[i]; }

 private:
  Fenced memory_;
};

template <Into into>
void check_8x12(std::int64_t count, std::int64_t a_stride, const Floats& a, const Floats& b) {
  constexpr std::int64_t kStride = 13;
  Fenced c(8 * kStride * 4);
  if (into == Into::add) {
    for (std::int64_t i = 0; i < 8 * kStride; ++i)
      if (i % kStride < 12) c.floats()[i] = 1.0F;
  }
  fma_tile_8x12<into>(count, a.data(), a_stride, b.data(), c.floats(), kStride);
  for (std::int64_t r = 0; r < 8; ++r) {
    EXPECT_TRUE(std::isnan(c.floats()[r * kStride + 12]));
    for (std::int64_t i = 0; i < 12; ++i) {
      double sum = into == Into::add ? 1 : 0;
      double size = 1;
      for (std::int64_t k = 0; k < count; ++k) {
        const double product = a[k * a_stride + r] * b[k * 12 + i];
        sum += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(c.floats()[r * kStride + i], sum, size * 0x1p-21) << count << " steps, row " << r;
    }
  }
}

TEST(NeonTile, Of8x12) {
  for (const std::int64_t count : {1, 2, 3, 4, 7, 59, 64, 128}) {
    for (const std::int64_t a_stride : {8, 11, 64}) {
      const Floats a((count - 1) * a_stride + 8, 1);
      const Floats b(count * 12, 2);
      check_8x12<Into::replace>(count, a_stride, a, b);
      check_8x12<Into::add>(count, a_stride, a, b);
    }
  }
}

TEST(NeonTile, Of8x12FindsPeaks) {
  constexpr std::int64_t kStride = 13;
  for (const std::int64_t count : {1, 2, 59, 64}) {
    const Floats a(count * 8, 1);
    const Floats b(count * 12, 2);
    Fenced expected(8 * kStride * 4);
    Fenced c(8 * kStride * 4);
    Fenced peak(12 * 4);
    const auto before = [](std::int64_t i) { return i % 3 == 0 ? 1000.0F : -INFINITY; };
    for (std::int64_t i = 0; i < 12; ++i) peak.floats()[i] = before(i);
    fma_tile_8x12<Into::replace>(count, a.data(), 8, b.data(), expected.floats(), kStride);
    fma_tile_8x12_and_peaks(count, a.data(), 8, b.data(), c.floats(), kStride, peak.floats());
    for (std::int64_t i = 0; i < 12; ++i) {
      float largest = before(i);
      for (std::int64_t r = 0; r < 8; ++r) {
        ASSERT_EQ(c.floats()[r * kStride + i], expected.floats()[r * kStride + i]);
        largest = std::fmax(largest, c.floats()[r * kStride + i]);
      }
      EXPECT_EQ(peak.floats()[i], largest) << "column " << i;
    }
  }
}

TEST(NeonTile, APeakThatIsNoNumberStays) {
  const Floats a(8, 1);
  Fenced b(12 * 4);
  for (std::int64_t i = 0; i < 12; ++i) b.floats()[i] = i == 5 ? NAN : 1.0F;
  Fenced c(8 * 12 * 4);
  Fenced peak(12 * 4);
  for (std::int64_t i = 0; i < 12; ++i) peak.floats()[i] = i == 7 ? NAN : -INFINITY;
  fma_tile_8x12_and_peaks(1, a.data(), 8, b.floats(), c.floats(), 12, peak.floats());
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(std::isnan(peak.floats()[i]), i == 5 || i == 7) << "column " << i;
}

TEST(NeonTile, Of12x8) {
  constexpr std::int64_t kStride = 9;
  for (const std::int64_t count : {2, 4, 12, 192}) {
    for (const std::int64_t stride : {12, 16, 131}) {
      for (const std::int64_t groups : {1, 2, 3}) {
        const Floats a((count - 1) * stride + 12, 1);
        const Floats b((count - 1) * stride + 8, 2);
        Fenced c(4 * groups * kStride * 4);
        for (std::int64_t i = 0; i < 4 * groups * kStride; ++i)
          if (i % kStride < 8) c.floats()[i] = 1.0F;
        fma_tile_12x8(count, a.data(), stride, b.data(), stride, c.floats(), kStride, groups);
        for (std::int64_t r = 0; r < 4 * groups; ++r) {
          EXPECT_TRUE(std::isnan(c.floats()[r * kStride + 8]));
          for (std::int64_t i = 0; i < 8; ++i) {
            double sum = 1;
            double size = 1;
            for (std::int64_t k = 0; k < count; ++k) {
              const double product = a[k * stride + r] * b[k * stride + i];
              sum += product;
              size += std::fabs(product);
            }
            ASSERT_NEAR(c.floats()[r * kStride + i], sum, size * 0x1p-21)
                << count << " steps, row " << r << " of " << 4 * groups;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::neon
