#pragma once
// Products by BFMMLA, for 16-bit inputs. A bf16 value is one term; an fp16 value is exactly two,
// high and low. Scores take all four products of the terms, because an LSE is wanted to 1e-5
// whatever the inputs' size; sums of values and gradients, which are rounded to fp16, do without
// that of the low terms. BFMMLA is four times as fast as FMLA, so that leaves a seventh.
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <arm_neon.h>

#include "cpu/engine/bfmmla_exp.h"
#include "cpu/engine/bfmmla_tiles.h"
#include "cpu/generic/engine.h"
#include "strobe/dtype.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Eight values as bf16 terms that sum to them.
template <int terms>
struct Bf16Terms {
  uint16x8_t term[terms];
};

inline uint16x8_t round_to_bf16(float32x4_t a, float32x4_t b) {
  return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(a), b));
}
inline float32x4_t widen_low(uint16x8_t x) {
  return vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16));
}
inline float32x4_t widen_high(uint16x8_t x) {
  return vreinterpretq_f32_u32(vshll_high_n_u16(x, 16));
}

/// Eight floats to so many terms, each rounded to the nearest even. The product of the low terms is
/// left out later, and rounding rather than cutting off the high ones keeps it small and unbiased.
template <int terms>
inline Bf16Terms<terms> terms_of_floats(float32x4_t a, float32x4_t b) {
  const uint16x8_t high = round_to_bf16(a, b);
  if constexpr (terms == 1) {
    return {{high}};
  } else {
    return {{high, round_to_bf16(vsubq_f32(a, widen_low(high)), vsubq_f32(b, widen_high(high)))}};
  }
}

/// Eight elements of an input: of bf16 for one term, of fp16 for two, which hold it exactly.
template <int terms>
inline Bf16Terms<terms> terms_of_input(uint16x8_t x) {
  if constexpr (terms == 1) {
    return {{x}};
  } else {
    const float16x8_t halves = vreinterpretq_f16_u16(x);
    return terms_of_floats<2>(vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves));
  }
}

inline uint16x8_t low_halves(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip1q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}
inline uint16x8_t high_halves(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip2q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}

/// Four columns of four from rows 0 and 2, and 1 and 3, already zipped.
inline void store_columns(std::uint16_t* target, uint16x8_t even, uint16x8_t odd) {
  vst1q_u16(target, vzip1q_u16(even, odd));
  vst1q_u16(target + 8, vzip2q_u16(even, odd));
}

/// Reads 16-bit elements eight at a time and remembers the largest: the exponent of infinity and
/// NaN is above all others.
class ElementReader {
 public:
  /// Eight from `column` on; zeros past the end of the row, or for no row at all.
  uint16x8_t read(const void* row, std::int64_t column, std::int64_t columns) {
    if (row == nullptr || column >= columns) return vdupq_n_u16(0);
    const auto* source = static_cast<const std::uint16_t*>(row) + column;
    uint16x8_t x;
    if (column + 8 <= columns) {
      x = vld1q_u16(source);
    } else {
      std::uint16_t tail[8] = {};
      for (std::int64_t i = 0; i < columns - column; ++i) tail[i] = source[i];
      x = vld1q_u16(tail);
    }
    largest_ = vmaxq_u16(largest_, vandq_u16(x, vdupq_n_u16(0x7FFF)));
    return x;
  }
  bool all_below(std::uint16_t infinity) const { return vmaxvq_u16(largest_) < infinity; }

 private:
  uint16x8_t largest_ = vdupq_n_u16(0);
};

/// The seam of the algorithms for bf16 (terms = 1) and fp16 (terms = 2) inputs. Four consecutive
/// elements of the summed index always stand together, 8 bytes, and a step is four of them:
///   key rows       [keys / 8][depth / 4][terms][8 keys][4]
///   query panel    [depth / 4][terms][12 queries][4]
///   key columns    [columns / 8][keys / 4][terms][8 columns][4]
///   right block    [keys / 4][terms][12 queries][4]
///   query rows     [columns / 8][panels * 3][terms][8 columns][4]
///   left block     [panels][keys / 4][3][terms][4 keys][4]
/// The packs expect the dtype of the terms and take it on trust.
template <int terms>
struct BfmmlaEngine {
  static_assert(terms == 1 || terms == 2);
  struct Setup {};
  using Background = NoBackground;

  static constexpr int kPanel = 12;
  static constexpr int kPanelVecs = kPanel / Vec::kWidth;
  static constexpr int kKeyBlock = 256;
  static constexpr int kGradientKeys = 128;
  static constexpr int kKeyStep = 8;
  static constexpr int kColumnStep = 8;
  static constexpr int kBlockRows = 4;
  static constexpr int kBlockVectors = 1;
  static constexpr bool kOneBlock = false;
  static constexpr bool kInPlace = false;
  static constexpr bool kTakesAnything = false;

  static std::int64_t key_rows_bytes(std::int64_t keys, std::int64_t depth) {
    return round_up(keys, kKeyStep) * round_up(depth, 4) * kElement;
  }
  static std::int64_t query_panel_bytes(std::int64_t depth) {
    return kPanel * round_up(depth, 4) * kElement;
  }
  static std::int64_t key_columns_bytes(std::int64_t keys, std::int64_t columns) {
    return round_up(keys, 4) * round_up(columns, kColumnStep) * kElement;
  }
  static std::int64_t query_rows_bytes(std::int64_t panels, std::int64_t columns) {
    return panels * kPanel * round_up(columns, kColumnStep) * kElement;
  }
  /// The last tile of add_rows may read two groups of four keys behind the last panel.
  static std::int64_t left_block_bytes(std::int64_t keys, std::int64_t panels) {
    return (panels * round_up(keys, kKeyStep) + 8) * kPanel * kElement;
  }
  static std::int64_t right_block_bytes(std::int64_t keys) {
    return round_up(keys, kKeyStep) * kPanel * kElement;
  }

  // Packs are functions of their own: inlined beside assembly that takes every register, GCC 12
  // keeps what their loops carry on the stack.
  template <class RowOf>
  STROBE_NOT_INLINE static bool pack_key_rows(RowOf row, DType, std::int64_t count,
                                              std::int64_t keys, std::int64_t depth, void* target) {
    ElementReader reader;
    const std::int64_t block = kKeyStep * round_up(depth, 4) * kElement;
    char* out = static_cast<char*>(target);
    for (std::int64_t j = 0; j < keys; j += kKeyStep, out += block)
      pack_rows<kKeyStep>(reader, row, j, count, depth, out);
    return reader.all_below(kInfinityBits);
  }

  template <class RowOf>
  STROBE_NOT_INLINE static bool pack_query_panel(RowOf row, DType, std::int64_t count,
                                                 std::int64_t depth, void* target) {
    ElementReader reader;
    pack_rows<kPanel>(reader, row, 0, count, depth, static_cast<char*>(target));
    return reader.all_below(kInfinityBits);
  }

  /// c[j][lane] = sum over k of row_j[k] * query_lane[k]
  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    const std::int64_t steps = (depth + 3) / 4;
    const char* x = static_cast<const char*>(key_rows);
    for (std::int64_t j = 0; j < keys; j += 8, x += steps * 32 * kElement, c += 8 * kPanel)
      multiply_8x12<terms, Into::replace>(steps, x, static_cast<const char*>(query_panel), c);
  }

  template <class RowOf>
  static bool pack_key_columns(RowOf row, DType, std::int64_t count, std::int64_t keys,
                               std::int64_t columns, void* target) {
    return pack_columns(row, count, keys, columns, static_cast<char*>(target));
  }

  /// Rows j to j + 3 of a right block, j a multiple of 4.
  static void put_right(void* block, std::int64_t, std::int64_t j, int v,
                        const Vec (&x)[kBlockRows][kBlockVectors]) {
    auto* target = static_cast<std::uint16_t*>(block) + j * kPanel * terms + 16 * v;
    const Bf16Terms<terms> rows01 = terms_of_floats<terms>(x[0][0].v, x[1][0].v);
    const Bf16Terms<terms> rows23 = terms_of_floats<terms>(x[2][0].v, x[3][0].v);
    for (int t = 0; t < terms; ++t, target += 4 * kPanel) {
      store_columns(target, vzip1q_u16(rows01.term[t], rows23.term[t]),
                    vzip2q_u16(rows01.term[t], rows23.term[t]));
    }
  }

  static bool put_exponentials(ShortExp, std::int64_t rows, const float* scores, float scale,
                               const float* base, float* row_sum,
                               void* block) requires(terms == 1) {
    if (scale > kExpLargestScale) return false;
    exp_rows_to_bf16(rows, scores, scale, base, row_sum, static_cast<std::uint16_t*>(block));
    return true;
  }

  /// c[column][lane] += sum over j of row_j[column] * block[j][lane]
  static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t packed_keys,
                        const void* key_columns, const void* right_block, float* c, bool first) {
    const std::int64_t steps = keys / 4;
    const std::int64_t step = packed_keys * 8 * kElement;
    const char* x = static_cast<const char*>(key_columns);
    const char* y = static_cast<const char*>(right_block);
    for (std::int64_t i = 0; i < columns; i += 8, x += step, c += 8 * kPanel) {
      if (first)
        multiply_8x12<terms, Into::replace>(steps, x, y, c);
      else
        multiply_8x12<terms, Into::add>(steps, x, y, c);
    }
  }

  /// Rows j to j + 3 of one panel of a left block, j a multiple of 4.
  static void put_left(void* block, std::int64_t keys, std::int64_t panel, std::int64_t j, int v,
                       const Vec (&x)[kBlockRows][kBlockVectors]) {
    const std::int64_t step = (panel * keys + j) / 4 * 3 + v;
    auto* target = static_cast<std::uint16_t*>(block) + step * 16 * terms;
    const Bf16Terms<terms> rows01 = terms_of_floats<terms>(x[0][0].v, x[1][0].v);
    const Bf16Terms<terms> rows23 = terms_of_floats<terms>(x[2][0].v, x[3][0].v);
    for (int t = 0; t < terms; ++t, target += 16) {
      vst1q_u16(target, rows01.term[t]);
      vst1q_u16(target + 8, rows23.term[t]);
    }
  }
  static void put_both(void* left, void* right, std::int64_t keys, std::int64_t panel,
                       std::int64_t j, int v, const Vec (&x)[kBlockRows][kBlockVectors]) {
    put_left(left, keys, panel, j, v, x);
    put_right(right, keys, j, v, x);
  }

  template <class RowOf>
  static bool pack_query_rows(RowOf row, DType, std::int64_t count, std::int64_t panels,
                              std::int64_t columns, void* target) {
    return pack_columns(row, count, panels * kPanel, columns, static_cast<char*>(target));
  }

  /// c[j][column] += sum over queries i of block[j][i] * row_i[column]
  ///
  /// Tiles of 12 keys x 8 columns, because head dimensions are multiples of 8 and not of 12; what
  /// the last tile has too many of is not stored.
  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* left_block, const void* query_rows, float* c,
                       std::int64_t stride) {
    const std::int64_t panel_bytes = keys * kPanel * kElement;
    const std::int64_t row_bytes = stride * static_cast<std::int64_t>(sizeof(float));
    for (std::int64_t j = 0; j < keys; j += 12) {
      const char* y = static_cast<const char*>(left_block) + j * kPanel * kElement;
      const char* x = static_cast<const char*>(query_rows);
      const std::int64_t groups = smaller(12, keys - j) / 4;
      for (std::int64_t i = 0; i < columns; i += 8, x += panels * kPanel * 8 * kElement)
        multiply_12x8<terms>(panels, x, y, panel_bytes, groups, c + j * stride + i, row_bytes);
    }
  }

 private:
  static constexpr std::int64_t kElement = 2 * terms;  // bytes
  static constexpr std::uint16_t kInfinityBits = terms == 1 ? 0x7F80 : 0x7C00;

  /// Rows first to first + rows - 1 as [depth / 4][terms][rows][4].
  template <int rows, class RowOf>
  static void pack_rows(ElementReader& reader, RowOf row, std::int64_t first, std::int64_t count,
                        std::int64_t depth, char* target) {
    for (int r = 0; r < rows; r += 2) {
      const void* even = first + r < count ? row(first + r) : nullptr;
      const void* odd = first + r + 1 < count ? row(first + r + 1) : nullptr;
      auto* out = reinterpret_cast<std::uint16_t*>(target) + 4 * r;
      for (std::int64_t k = 0; k < depth; k += 8, out += 8 * rows * terms) {
        const Bf16Terms<terms> a = terms_of_input<terms>(reader.read(even, k, depth));
        const Bf16Terms<terms> b = terms_of_input<terms>(reader.read(odd, k, depth));
        for (int t = 0; t < terms; ++t)
          vst1q_u16(out + t * 4 * rows, low_halves(a.term[t], b.term[t]));
        if (k + 4 >= depth) break;
        for (int t = 0; t < terms; ++t)
          vst1q_u16(out + (terms + t) * 4 * rows, high_halves(a.term[t], b.term[t]));
      }
    }
  }

  /// Rows [0, padded) as [columns / 8][padded / 4][terms][8 columns][4 rows].
  template <class RowOf>
  STROBE_NOT_INLINE static bool pack_columns(RowOf row, std::int64_t count, std::int64_t padded,
                                             std::int64_t columns, char* target) {
    ElementReader reader;
    for (std::int64_t j = 0; j < padded; j += 4) {
      const void* source[4];
      for (int r = 0; r < 4; ++r) source[r] = j + r < count ? row(j + r) : nullptr;
      auto* out = reinterpret_cast<std::uint16_t*>(target + j * 8 * kElement);
      for (std::int64_t i = 0; i < columns; i += 8, out += padded * 8 * terms) {
        Bf16Terms<terms> x[4];
        for (int r = 0; r < 4; ++r)
          x[r] = terms_of_input<terms>(reader.read(source[r], i, columns));
        for (int t = 0; t < terms; ++t) {
          const auto part = [&](int r) { return x[r].term[t]; };
          store_columns(out + 32 * t, vzip1q_u16(part(0), part(2)), vzip1q_u16(part(1), part(3)));
          store_columns(out + 32 * t + 16, vzip2q_u16(part(0), part(2)),
                        vzip2q_u16(part(1), part(3)));
        }
      }
    }
    return reader.all_below(kInfinityBits);
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
