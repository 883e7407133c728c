#pragma once
// Moves rows of the problem's dtype into float32 scratch and back.

#include "cpu/generic/math.h"
#include "cpu/head_task.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr int kWidth = Vec::kWidth;
constexpr int kTileRows = Vec::kTileRows;
constexpr int kTileVecs = Vec::kTileVecs;
constexpr int kPanel = kTileVecs * kWidth;  // queries side by side in the lanes
constexpr int kPackRows = 8;                // keys side by side in a transposed pack
static_assert(kQueryBlock % kPanel == 0 && kKeyBlock % kPackRows == 0);
static_assert(kPackRows % kTileRows == 0 && kPackRows % kTransposeBlock == 0);
static_assert(kPanel % kTransposeBlock == 0);

/// The element types, each with its vector load and store.
struct Fp32 {
  using Type = float;
  static Vec load(const Type* p) { return STROBE_ISA::load(p); }
  static void store(Type* p, Vec a) { STROBE_ISA::store(p, a); }
};
struct Fp16 {
  using Type = std::uint16_t;
  static Vec load(const Type* p) { return load_fp16(p); }
  static void store(Type* p, Vec a) { store_fp16(p, a); }
};
struct Bf16 {
  using Type = std::uint16_t;
  static Vec load(const Type* p) { return load_bf16(p); }
  static void store(Type* p, Vec a) { store_bf16(p, a); }
};

/// Calls body with the element type of a dtype.
template <class Body>
inline void with_element(DType dtype, Body&& body) {
  if (dtype == DType::fp16) return body(Fp16{});
  if (dtype == DType::bf16) return body(Bf16{});
  body(Fp32{});
}

inline void* row_of(const Rows& rows, std::int64_t index, DType dtype) {
  return static_cast<char*>(rows.data) + index * rows.stride * (dtype == DType::fp32 ? 4 : 2);
}

/// One row to float32: `count` elements, then zeros up to `padded`. Returns a vector that is zero
/// if all were finite and NaN somewhere if not.
template <class Element>
inline Vec widen_row(const typename Element::Type* source, std::int64_t count, std::int64_t padded,
                     float* target) {
  Vec check = splat(0.0F);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Vec x = Element::load(source + i);
    store(target + i, x);
    check = fma(x, splat(0.0F), check);
  }
  if (i < count) {
    typename Element::Type tail[kWidth] = {};
    float wide[kWidth];
    for (std::int64_t j = i; j < count; ++j) tail[j - i] = source[j];
    const Vec x = Element::load(tail);
    store(wide, x);
    check = fma(x, splat(0.0F), check);
    for (std::int64_t j = i; j < count; ++j) target[j] = wide[j - i];
  }
  for (i = count; i < padded; ++i) target[i] = 0.0F;
  return check;
}

/// Rows [first, first + count) as float32 [count][padded]. Returns whether every element is finite.
inline bool widen_rows(const Rows& rows, DType dtype, std::int64_t first, std::int64_t count,
                       std::int64_t columns, std::int64_t padded, float* target) {
  Vec check = splat(0.0F);
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t r = 0; r < count; ++r) {
      const auto* source =
          static_cast<const typename Element::Type*>(row_of(rows, first + r, dtype));
      check = check + widen_row<Element>(source, columns, padded, target + r * padded);
    }
  });
  float lanes[kWidth];
  store(lanes, check);
  bool finite = true;
  for (int i = 0; i < kWidth; ++i) finite = finite && lanes[i] == 0.0F;
  return finite;
}

/// target[c][r] = source[r][c]
inline void transpose(const float* source, std::int64_t source_stride, std::int64_t rows,
                      std::int64_t columns, float* target, std::int64_t target_stride) {
  const std::int64_t whole_rows = rows / kTransposeBlock * kTransposeBlock;
  const std::int64_t whole_columns = columns / kTransposeBlock * kTransposeBlock;
  for (std::int64_t r = 0; r < whole_rows; r += kTransposeBlock) {
    for (std::int64_t c = 0; c < whole_columns; c += kTransposeBlock) {
      transpose_block(source + r * source_stride + c, source_stride, target + c * target_stride + r,
                      target_stride);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      target[c * target_stride + r] = source[r * source_stride + c];
    }
  }
}

/// Rows [first, first + count) transposed to float32 [columns][lead], count <= lead, the lanes
/// past `count` zero. `staging` holds [kPackRows][columns].
inline void pack_transposed(const Rows& rows, DType dtype, std::int64_t first, std::int64_t count,
                            std::int64_t columns, std::int64_t lead, float* target,
                            float* staging) {
  for (std::int64_t r = 0; r < count; r += kPackRows) {
    const std::int64_t some = smaller(kPackRows, count - r);
    const float* source = static_cast<const float*>(row_of(rows, first + r, dtype));
    std::int64_t stride = rows.stride;
    if (dtype != DType::fp32) {
      widen_rows(rows, dtype, first + r, some, columns, columns, staging);
      source = staging;
      stride = columns;
    }
    transpose(source, stride, some, columns, target + r, lead);
  }
  for (std::int64_t c = 0; c < columns && count < lead; ++c) {
    for (std::int64_t r = count; r < lead; ++r) target[c * lead + r] = 0.0F;
  }
}

/// Rows [first, first + count) as transposed packs of kPackRows: [count / 8][columns][8].
inline void pack_tiles(const Rows& rows, DType dtype, std::int64_t first, std::int64_t count,
                       std::int64_t columns, float* target, float* staging) {
  for (std::int64_t r = 0; r < count; r += kPackRows) {
    pack_transposed(rows, dtype, first + r, smaller(kPackRows, count - r), columns, kPackRows,
                    target + r * columns, staging);
  }
}

/// source [count] times `factor` to one row of the dtype.
template <class Element>
inline void narrow_row(const float* source, std::int64_t count, float factor,
                       typename Element::Type* target) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    Element::store(target + i, load(source + i) * splat(factor));
  if (i == count) return;
  float wide[kWidth] = {};
  typename Element::Type tail[kWidth];
  for (std::int64_t j = i; j < count; ++j) wide[j - i] = source[j];
  Element::store(tail, load(wide) * splat(factor));
  for (std::int64_t j = i; j < count; ++j) target[j] = tail[j - i];
}

/// source [count][stride] times `factor` into rows [first, first + count).
inline void narrow_rows(const float* source, std::int64_t stride, std::int64_t count,
                        std::int64_t columns, float factor, const Rows& rows, DType dtype,
                        std::int64_t first) {
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t r = 0; r < count; ++r) {
      narrow_row<Element>(source + r * stride, columns, factor,
                          static_cast<typename Element::Type*>(row_of(rows, first + r, dtype)));
    }
  });
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
