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
  // from the second cache as fast as it is multiplied. Twice as many again would round too much.
  static constexpr int kKeyBlock = 256;

  // Left blocks have keys along their rows, so they are no right ones.
  static constexpr int kBlockRows = 4;
  static constexpr bool kOneBlock = false;

  /// The last tile of add_rows may read two groups of four keys behind the last row.
  static std::int64_t left_block_bytes(std::int64_t keys, std::int64_t panels) {
    return floats(panels * kPanel * keys + 8);
  }

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    const auto* a = static_cast<const float*>(key_rows);
    const auto* b = static_cast<const float*>(query_panel);
    for (std::int64_t r = 0; r < keys; r += 8)
      fma_tile_8x12<Into::replace>(depth, a + r * depth, 8, b, c + r * kPanel, kPanel);
  }

  static void scores_and_peaks(std::int64_t keys, std::int64_t depth, const void* key_rows,
                               const void* query_panel, float* c, float* peak) {
    const auto* a = static_cast<const float*>(key_rows);
    const auto* b = static_cast<const float*>(query_panel);
    for (std::int64_t r = 0; r < keys; r += 8)
      fma_tile_8x12_and_peaks(depth, a + r * depth, 8, b, c + r * kPanel, kPanel, peak);
  }

  static bool take_exponentials(PreciseExp, std::int64_t rows, const float* scores, float scale,
                                const float* base, float* row_sum, float* p) {
    if (scale < kExpSmallestScale) return false;
    for (int lane = 0; lane < kPanel; ++lane) {
      const float size = base[lane] < 0 ? -base[lane] : base[lane];
      if (size > kExpLargestBase && size < __builtin_inff()) return false;
    }
    exp_rows_12(rows, scores, scale, base, row_sum, p);
    return true;
  }
  static bool put_exponentials(PreciseExp, std::int64_t rows, const float* scores, float scale,
                               const float* base, float* row_sum, void* block) {
    return take_exponentials(PreciseExp(), rows, scores, scale, base, row_sum,
                             static_cast<float*>(block));
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t packed_keys,
                        const void* key_columns, const void* block, float* c, bool first) {
    const auto* a = static_cast<const float*>(key_columns);
    const auto* b = static_cast<const float*>(block);
    for (std::int64_t column = 0; column < columns; column += 8, a += strip_of(packed_keys)) {
      if (first)
        fma_tile_8x12<Into::replace>(keys, a, 8, b, c + column * kPanel, kPanel);
      else
        fma_tile_8x12<Into::add>(keys, a, 8, b, c + column * kPanel, kPanel);
    }
  }

  static void put_right(void* block, std::int64_t, std::int64_t j, int v,
                        const Vec (&x)[kBlockRows][kBlockVectors]) {
    float* target = static_cast<float*>(block) + j * kPanel + v * kWidth;
    for (int r = 0; r < kBlockRows; ++r) store(target + r * kPanel, x[r][0]);
  }
  /// [panel][kPanel][keys]
  static void put_left(void* block, std::int64_t keys, std::int64_t panel, std::int64_t j, int v,
                       const Vec (&x)[kBlockRows][kBlockVectors]) {
    const float32x4x2_t rows02 = vzipq_f32(x[0][0].v, x[2][0].v);
    const float32x4x2_t rows13 = vzipq_f32(x[1][0].v, x[3][0].v);
    float* target = static_cast<float*>(block) + (panel * kPanel + v * kWidth) * keys + j;
    for (int half = 0; half < 2; ++half) {
      const float32x4x2_t queries = vzipq_f32(rows02.val[half], rows13.val[half]);
      vst1q_f32(target + 2 * half * keys, queries.val[0]);
      vst1q_f32(target + (2 * half + 1) * keys, queries.val[1]);
    }
  }
  static void put_both(void* left, void* right, std::int64_t keys, std::int64_t panel,
                       std::int64_t j, int v, const Vec (&x)[kBlockRows][kBlockVectors]) {
    put_left(left, keys, panel, j, v, x);
    put_right(right, keys, j, v, x);
  }

  /// [panels * kPanel][padded]
  template <class RowOf>
  static bool pack_query_rows(RowOf row, DType dtype, std::int64_t count, std::int64_t panels,
                              std::int64_t columns, void* target) {
    return widen_rows(row, dtype, count, panels * kPanel, columns, padded(columns),
                      static_cast<float*>(target));
  }

  /// Tiles of 12 keys x 8 columns, because head dimensions are multiples of 8 and not of 12; what
  /// the last tile has too many of is not stored.
  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* block, const void* query_rows, float* c, std::int64_t stride) {
    const auto* a = static_cast<const float*>(block);
    const auto* b = static_cast<const float*>(query_rows);
    const std::int64_t width = padded(columns);
    for (std::int64_t j = 0; j < keys; j += 12) {
      const std::int64_t groups = smaller(12, keys - j) / 4;
      for (std::int64_t column = 0; column < width; column += 8)
        fma_tile_12x8(panels * kPanel, a + j, keys, b + column, width, c + j * stride + column,
                      stride, groups);
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
