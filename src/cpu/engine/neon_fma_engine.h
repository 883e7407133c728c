#pragma once
// FmaEngine with its three products and exact exponentials in assembly. Included after
// cpu/simd/neon.h, in the namespace STROBE_ISA names.

#include "cpu/engine/neon_exp.h"
#include "cpu/engine/neon_fma.h"
#include "cpu/generic/fma_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct NeonFmaEngine : FmaEngine<Zeros::multiply> {
  static_assert(kPanel == 12 && kPackRows == 8 && kColumnStep == 8);

  // Sums of values are loaded and stored once a block, and one of twice as many keys still streams
  // from the second cache as fast as it is multiplied.
  static constexpr int kKeyBlock = 256;

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    const auto* a = static_cast<const float*>(key_rows);
    const auto* b = static_cast<const float*>(query_panel);
    for (std::int64_t r = 0; r < keys; r += 8)
      fma_tile_8x12<Into::replace>(depth, a + r * depth, 8, b, c + r * kPanel, kPanel);
  }

  static void put_exponentials(PreciseExp, std::int64_t rows, const float* scores, float scale,
                               const float* base, float* row_sum, void* block) {
    exp_rows_12(rows, scores, scale, base, row_sum, static_cast<float*>(block));
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, const void* key_columns,
                        const void* block, float* c, bool first) {
    const auto* a = static_cast<const float*>(key_columns);
    const auto* b = static_cast<const float*>(block);
    const std::int64_t width = padded(columns);
    for (std::int64_t column = 0; column < width; column += 8) {
      if (first)
        fma_tile_8x12<Into::replace>(keys, a + column, width, b, c + column * kPanel, kPanel);
      else
        fma_tile_8x12<Into::add>(keys, a + column, width, b, c + column * kPanel, kPanel);
    }
  }

  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* block, const void* query_rows, float* c, std::int64_t stride) {
    const auto* a = static_cast<const float*>(block);
    const auto* b = static_cast<const float*>(query_rows);
    const std::int64_t width = padded(columns);
    for (std::int64_t column = 0; column < width; column += 8) {
      for (std::int64_t r = 0; r < keys; r += 8)
        fma_tile_8x8(panels, a + r * kPanel, keys * kPanel, b + column, width,
                     c + r * stride + column, stride);
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
