// The packs for matrix units must notice everything that is not finite, which those units cannot
// take. They need AVX-512 alone, and so are tested without such a unit.
#include "cpu/tile_packs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "core/convert.h"
#include "cpu/has_isa.h"

namespace strobe::cpu {
namespace {

/// Whether all packs say that rows of ones but for the element with these bits are finite or not.
template <class Bits>
void expect_finite(DType dtype, Bits one, Bits bits, bool finite) {
  for (const std::size_t at : {0, 17, 30}) {
    std::array<Bits, 32> row;
    row.fill(one);
    row[at] = bits;
    const tile_packs::Finite found = tile_packs::pack_all(dtype, row.data());
    EXPECT_EQ(found.key_rows, finite) << name_of(dtype) << " 0x" << std::hex << bits;
    EXPECT_EQ(found.query_panel, finite) << name_of(dtype) << " 0x" << std::hex << bits;
    EXPECT_EQ(found.key_columns, finite) << name_of(dtype) << " 0x" << std::hex << bits;
    EXPECT_EQ(found.query_rows, finite) << name_of(dtype) << " 0x" << std::hex << bits;
  }
}

TEST(TilePacks, NoticeAllThatIsNotFiniteIn16Bits) {
  if (!has_isa("avx512")) GTEST_SKIP() << "this CPU has no avx512";
  for (unsigned i = 0; i < 0x10000 && !HasFailure(); ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    expect_finite<std::uint16_t>(DType::bf16, 0x3F80, bits, std::isfinite(bf16_to_float(bits)));
    expect_finite<std::uint16_t>(DType::fp16, 0x3C00, bits, std::isfinite(fp16_to_float(bits)));
  }
}

TEST(TilePacks, NoticeAllThatIsNotFiniteInFp32) {
  if (!has_isa("avx512")) GTEST_SKIP() << "this CPU has no avx512";
  constexpr std::uint32_t kLargest = 0x7F7F7FFF;  // that does not become an infinite bf16
  // Of every exponent, the mantissas at both ends.
  for (std::uint32_t high = 0; high < 0x10000 && !HasFailure();
       high += high % 0x80 == 1 ? 0x7D : 1) {
    for (const std::uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0xFFFFU}) {
      const std::uint32_t bits = high << 16 | low;
      expect_finite(DType::fp32, 0x3F800000U, bits, (bits & 0x7FFFFFFF) <= kLargest);
    }
  }
}

}  // namespace
}  // namespace strobe::cpu
