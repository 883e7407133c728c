// The BFMMLA engine against plain loops, at sizes around its tiles. What it may not take for a
// number is NaN beforehand, and what lies behind the end of a buffer may not be touched.
#include <gtest/gtest.h>
#include <sys/auxv.h>

#include <cmath>
#include <vector>

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA bfmmla
#include "cpu/simd/neon.h"

#include "core/convert.h"
#include "cpu/engine/bfmmla.h"
#include "support/fenced.h"

namespace strobe::cpu::bfmmla {
namespace {

using test::draw;
using test::Fenced;

constexpr std::int64_t kKeyCounts[] = {1, 7, 8, 9, 12, 31, 128};
constexpr std::int64_t kWidths[] = {4, 8, 59, 64, 72, 128, 129};

/// Rows of a 16-bit type with NaN between them.
class Rows16 {
 public:
  Rows16(std::int64_t rows, std::int64_t columns, DType dtype, unsigned seed)
      : dtype_(dtype), stride_(columns + 8), bits_(((rows - 1) * stride_ + columns) * 2) {
    std::mt19937 random(seed);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const float x = draw(random);
        at(r, c) = dtype == DType::bf16 ? float_to_bf16(x) : float_to_fp16(x);
      }
    }
  }
  std::uint16_t& at(std::int64_t r, std::int64_t c) {
    return static_cast<std::uint16_t*>(bits_.data())[r * stride_ + c];
  }
  double value(std::int64_t r, std::int64_t c) {
    return dtype_ == DType::bf16 ? bf16_to_float(at(r, c)) : fp16_to_float(at(r, c));
  }
  auto reader() {
    return [this](std::int64_t r) -> const void* { return &at(r, 0); };
  }

 private:
  DType dtype_;
  std::int64_t stride_;
  Fenced bits_;
};

template <class Terms>
class Bfmmla : public testing::Test {
 protected:
  static constexpr int kTerms = Terms::value;
  static constexpr DType kDType = kTerms == 1 ? DType::bf16 : DType::fp16;
  using Tested = BfmmlaEngine<kTerms>;

  void SetUp() override {
    constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16
    if ((getauxval(AT_HWCAP2) & kBf16) == 0) GTEST_SKIP() << "this CPU has no BFMMLA";
  }

  /// What is left of a float in a block: one term is rounded, two keep 16 bits.
  static double kept(float x) {
    const float high = bf16_to_float(float_to_bf16(x));
    return kTerms == 1 ? high : double{high} + bf16_to_float(float_to_bf16(x - high));
  }

  /// `size` is the sum of the products' sizes. Scores are fp32 sums, rounded to odd; other sums of
  /// two terms lack the product of the low ones, each at most 2^-8 of its value.
  static double score_tolerance(double size) { return size * 0x1p-20 + 1e-30; }
  static double tolerance(double size) { return size * (kTerms == 1 ? 0x1p-20 : 0x1p-15) + 1e-30; }

  /// Fills a block of [keys][panels * 12] by `put` and returns what the engine keeps of it. Rows
  /// from `count` on are zero, as the algorithm leaves them.
  template <class Put>
  static std::vector<double> fill_block(std::int64_t count, std::int64_t keys, std::int64_t panels,
                                        Put put) {
    std::mt19937 random(5);
    const std::int64_t lanes = panels * Tested::kPanel;
    std::vector<float> block(static_cast<std::size_t>(keys * lanes), 0.0F);
    std::vector<double> result;
    for (std::int64_t i = 0; i < count * lanes; ++i)
      block[static_cast<std::size_t>(i)] = draw(random);
    for (const float x : block) result.push_back(kept(x));
    for (std::int64_t j = 0; j < keys; j += Tested::kBlockRows) {
      for (std::int64_t panel = 0; panel < panels; ++panel) {
        for (int v = 0; v < Tested::kPanelVecs; ++v) {
          Vec x[Tested::kBlockRows][Tested::kBlockVectors];
          for (int r = 0; r < Tested::kBlockRows; ++r)
            x[r][0] = load(block.data() + (j + r) * lanes + panel * Tested::kPanel + v * 4);
          put(panel, j, v, x);
        }
      }
    }
    return result;
  }
};

using BothTerms = testing::Types<std::integral_constant<int, 1>, std::integral_constant<int, 2>>;
TYPED_TEST_SUITE(Bfmmla, BothTerms, );

TYPED_TEST(Bfmmla, Scores) {
  using Engine = typename TestFixture::Tested;
  for (const std::int64_t count : kKeyCounts) {
    for (const std::int64_t depth : kWidths) {
      const std::int64_t keys = round_up(count, Engine::kKeyStep);
      for (const std::int64_t lanes : {std::int64_t{Engine::kPanel}, std::int64_t{5}}) {
        Rows16 k(count, depth, TestFixture::kDType, 1);
        Rows16 q(lanes, depth, TestFixture::kDType, 2);
        Fenced key_rows(Engine::key_rows_bytes(keys, depth));
        Fenced panel(Engine::query_panel_bytes(depth));
        Fenced c(keys * Engine::kPanel * 4);
        EXPECT_TRUE(Engine::pack_key_rows(k.reader(), TestFixture::kDType, count, keys, depth,
                                          key_rows.data()));
        EXPECT_TRUE(
            Engine::pack_query_panel(q.reader(), TestFixture::kDType, lanes, depth, panel.data()));
        Engine::scores(keys, depth, key_rows.data(), panel.data(), c.floats());
        for (std::int64_t j = 0; j < keys; ++j) {
          for (std::int64_t i = 0; i < Engine::kPanel; ++i) {
            double sum = 0;
            double size = 0;
            for (std::int64_t x = 0; x < depth && j < count && i < lanes; ++x) {
              sum += k.value(j, x) * q.value(i, x);
              size += std::fabs(k.value(j, x) * q.value(i, x));
            }
            ASSERT_NEAR(c.floats()[j * Engine::kPanel + i], sum, TestFixture::score_tolerance(size))
                << count << " keys, depth " << depth << ", key " << j << ", lane " << i;
          }
        }
      }
    }
  }
}

TYPED_TEST(Bfmmla, AddPanel) {
  using Engine = typename TestFixture::Tested;
  for (const std::int64_t count : kKeyCounts) {
    for (const std::int64_t columns : kWidths) {
      const std::int64_t keys = round_up(count, Engine::kKeyStep);
      const std::int64_t padded = round_up(columns, Engine::kColumnStep);
      Rows16 values(count, columns, TestFixture::kDType, 3);
      Fenced key_columns(Engine::key_columns_bytes(keys, columns));
      Fenced block(Engine::right_block_bytes(keys));
      Fenced c(padded * Engine::kPanel * 4);
      for (std::int64_t i = 0; i < padded * Engine::kPanel; ++i) c.floats()[i] = 1.0F;
      EXPECT_TRUE(Engine::pack_key_columns(values.reader(), TestFixture::kDType, count, keys,
                                           columns, key_columns.data()));
      const std::vector<double> p = TestFixture::fill_block(
          count, keys, 1, [&](std::int64_t, std::int64_t j, int v, const auto& x) {
            Engine::put_right(block.data(), keys, j, v, x);
          });
      // What the first of them finds does not count.
      for (std::int64_t i = 0; i < padded * Engine::kPanel; ++i) c.floats()[i] = NAN;
      Engine::add_panel(columns, keys, keys, key_columns.data(), block.data(), c.floats(), true);
      for (std::int64_t i = 0; i < padded * Engine::kPanel; ++i)
        c.floats()[i] = std::isfinite(c.floats()[i]) ? 1.0F : NAN;
      Engine::add_panel(columns, keys, keys, key_columns.data(), block.data(), c.floats(), false);
      for (std::int64_t column = 0; column < padded; ++column) {
        for (std::int64_t i = 0; i < Engine::kPanel; ++i) {
          double sum = 1;
          double size = 1;
          for (std::int64_t j = 0; j < count && column < columns; ++j) {
            const double x = p[static_cast<std::size_t>(j * Engine::kPanel + i)];
            sum += values.value(j, column) * x;
            size += std::fabs(values.value(j, column) * x);
          }
          ASSERT_NEAR(c.floats()[column * Engine::kPanel + i], sum, TestFixture::tolerance(size))
              << count << " keys, " << columns << " columns, column " << column << ", lane " << i;
        }
      }
    }
  }
}

TYPED_TEST(Bfmmla, AddRows) {
  using Engine = typename TestFixture::Tested;
  for (const std::int64_t count : kKeyCounts) {
    for (const std::int64_t columns : kWidths) {
      for (const std::int64_t panels : {1, 2, 3}) {
        const std::int64_t keys = round_up(count, Engine::kKeyStep);
        const std::int64_t queries = panels * Engine::kPanel - (panels == 2 ? 5 : 0);
        const std::int64_t lanes = panels * Engine::kPanel;
        const std::int64_t padded = round_up(columns, Engine::kColumnStep);
        const std::int64_t stride = padded + 3;
        Rows16 rows(queries, columns, TestFixture::kDType, 4);
        Fenced query_rows(Engine::query_rows_bytes(panels, columns));
        Fenced block(Engine::left_block_bytes(keys, panels));
        Fenced c(keys * stride * 4);
        for (std::int64_t j = 0; j < keys; ++j) {
          for (std::int64_t i = 0; i < padded; ++i) c.floats()[j * stride + i] = 1.0F;
        }
        EXPECT_TRUE(Engine::pack_query_rows(rows.reader(), TestFixture::kDType, queries, panels,
                                            columns, query_rows.data()));
        const std::vector<double> p = TestFixture::fill_block(
            count, keys, panels, [&](std::int64_t panel, std::int64_t j, int v, const auto& x) {
              Engine::put_left(block.data(), keys, panel, j, v, x);
            });
        Engine::add_rows(keys, panels, columns, block.data(), query_rows.data(), c.floats(),
                         stride);
        for (std::int64_t j = 0; j < keys; ++j) {
          for (std::int64_t column = 0; column < padded; ++column) {
            double sum = 1;
            double size = 1;
            for (std::int64_t i = 0; i < queries && column < columns; ++i) {
              const double x = p[static_cast<std::size_t>(j * lanes + i)];
              sum += x * rows.value(i, column);
              size += std::fabs(x * rows.value(i, column));
            }
            ASSERT_NEAR(c.floats()[j * stride + column], sum, TestFixture::tolerance(size))
                << count << " keys, " << panels << " panels, " << columns << " columns, key " << j
                << ", column " << column;
          }
          EXPECT_TRUE(std::isnan(c.floats()[j * stride + padded])) << "key " << j;
        }
      }
    }
  }
}

// An fp16 value is held exactly: with one factor a power of two there is no low term to leave out.
TYPED_TEST(Bfmmla, TermsHoldTheInputsExactly) {
  using Engine = typename TestFixture::Tested;
  for (std::uint32_t bits = 0; bits < 0x8000; bits += 8) {
    Rows16 k(8, 1, TestFixture::kDType, 1);
    Rows16 q(1, 1, TestFixture::kDType, 2);
    q.at(0, 0) = TestFixture::kDType == DType::bf16 ? float_to_bf16(0.5F) : float_to_fp16(0.5F);
    bool finite = true;
    for (std::int64_t j = 0; j < 8; ++j) {
      k.at(j, 0) = static_cast<std::uint16_t>(bits + j);
      finite = finite && std::isfinite(k.value(j, 0));
    }
    Fenced key_rows(Engine::key_rows_bytes(8, 1));
    Fenced panel(Engine::query_panel_bytes(1));
    float c[8 * Engine::kPanel];
    ASSERT_EQ(Engine::pack_key_rows(k.reader(), TestFixture::kDType, 8, 8, 1, key_rows.data()),
              finite);
    if (!finite) continue;
    Engine::pack_query_panel(q.reader(), TestFixture::kDType, 1, 1, panel.data());
    Engine::scores(8, 1, key_rows.data(), panel.data(), c);
    for (std::int64_t j = 0; j < 8; ++j) {
      const double truth = k.value(j, 0) / 2;
      if (std::fabs(truth) < 0x1p-125) continue;  // BFMMLA takes subnormal numbers for zero
      ASSERT_EQ(c[j * Engine::kPanel], truth) << "bits " << bits + j;
    }
  }
}

TYPED_TEST(Bfmmla, PacksSeeWhatIsNotFinite) {
  using Engine = typename TestFixture::Tested;
  constexpr DType kInput = TestFixture::kDType;
  constexpr std::uint16_t kInfinite = kInput == DType::bf16 ? 0xFF80 : 0xFC00;
  for (const std::int64_t columns : kWidths) {
    for (const std::uint16_t bad : {kInfinite, std::uint16_t{0x7FFF}}) {
      Rows16 rows(9, columns, kInput, 1);
      Fenced target(Engine::key_rows_bytes(16, columns + 8) * 2);
      rows.at(8, columns - 1) = bad;
      EXPECT_FALSE(Engine::pack_key_rows(rows.reader(), kInput, 9, 16, columns, target.data()));
      EXPECT_FALSE(Engine::pack_query_panel(rows.reader(), kInput, 9, columns, target.data()));
      EXPECT_FALSE(Engine::pack_key_columns(rows.reader(), kInput, 9, 16, columns, target.data()));
      EXPECT_FALSE(Engine::pack_query_rows(rows.reader(), kInput, 9, 1, columns, target.data()));
      // Outside of the rows and columns that are asked for it is nobody's business.
      EXPECT_TRUE(Engine::pack_key_rows(rows.reader(), kInput, 8, 16, columns, target.data()));
      EXPECT_TRUE(
          Engine::pack_key_columns(rows.reader(), kInput, 9, 16, columns - 1, target.data()));
    }
  }
}

using BfmmlaExp = Bfmmla<std::integral_constant<int, 1>>;

TEST_F(BfmmlaExp, AreTheSharedOnesRounded) {
  constexpr float kScale = 0.37F;
  for (const std::int64_t rows : {8, 16, 128}) {
    Fenced x(rows * 48), base(48), sum(48), p(rows * 24);
    std::mt19937 random(7);
    for (int lane = 0; lane < 12; ++lane) {
      base.floats()[lane] = 4 * draw(random);
      sum.floats()[lane] = static_cast<float>(lane);
    }
    for (std::int64_t i = 0; i < rows * 12; ++i)
      x.floats()[i] = i % 7 == 0 ? -kInfinity : draw(random) * (i % 5 == 0 ? 50.0F : 5.0F);
    Tested::put_exponentials(ShortExp(), rows, x.floats(), kScale, base.floats(), sum.floats(),
                             p.data());
    for (std::int64_t lane = 0; lane < 12; ++lane) {
      double total = static_cast<double>(lane);
      for (std::int64_t j = 0; j < rows; ++j) {
        float truth[kWidth];
        const ShortExp exp(kScale, splat(base.floats()[lane]));
        store(truth, exp(splat(x.floats()[j * 12 + lane])));
        total += truth[0];
        const std::int64_t at = (j / 4 * 12 + lane) * 4 + j % 4;
        const float found = bf16_to_float(static_cast<std::uint16_t*>(p.data())[at]);
        // The last bit before rounding may differ.
        ASSERT_NEAR(found, truth[0], truth[0] * 0x1.01p-8F) << x.floats()[j * 12 + lane];
        ASSERT_EQ(found == 0.0F, truth[0] == 0.0F) << x.floats()[j * 12 + lane];
      }
      EXPECT_NEAR(sum.floats()[lane], total, total * 1e-5) << rows << " rows";
    }
  }
}

// Whoever finds the base sees to what is no number.
TEST_F(BfmmlaExp, OfNoNumberIsNothing) {
  float x[8 * 12] = {}, base[12] = {}, sum[12] = {};
  std::uint16_t p[8 * 12];
  x[3 * 12 + 5] = std::nanf("");
  Tested::put_exponentials(ShortExp(), 8, x, 1.0F, base, sum, p);
  EXPECT_EQ(p[5 * 4 + 3], 0);
  EXPECT_EQ(sum[5], 7.0F);
  EXPECT_EQ(bf16_to_float(p[4 * 4 + 3]), 1.0F);
  EXPECT_EQ(sum[4], 8.0F);
}

// In units of an integer's last place, where one that is infinite makes no number of a score of 0.
TEST_F(BfmmlaExp, TakeALargeScaleUpToWhereItHasRoom) {
  float x[8 * 12] = {}, base[12] = {}, sum[12] = {};
  std::uint16_t p[8 * 12];
  const auto take = [&](float scale) {
    return Tested::put_exponentials(ShortExp(), 8, x, scale, base, sum, p);
  };
  ASSERT_TRUE(take(kExpLargestScale));
  EXPECT_EQ(bf16_to_float(p[0]), 1.0F);
  EXPECT_EQ(sum[0], 8.0F);
  EXPECT_FALSE(take(2 * kExpLargestScale));
  EXPECT_FALSE(take(1e37F));
  EXPECT_EQ(sum[0], 8.0F);
}

}  // namespace
}  // namespace strobe::cpu::bfmmla
