#pragma once
// Moves rows of the problem's dtype into float32 and back.

#include "cpu/generic/math.h"
#include "cpu/head_task.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr int kPackRows = 8;  // rows side by side in a transposed pack
static_assert(kPackRows % kTransposeBlock == 0);

/// The element types, each with its vector load and store, and where an instruction set has it two
/// vectors as words that hold an element of each.
struct Fp32 {
  using Type = float;
  static Vec load(const Type* p) { return STROBE_ISA::load(p); }
  static void store(Type* p, Vec a) { STROBE_ISA::store(p, a); }
};
struct Fp16 {
  using Type = std::uint16_t;
  static Vec load(const Type* p) { return load_fp16(p); }
  static void store(Type* p, Vec a) { store_fp16(p, a); }
  template <class V>
  static auto pair(V a, V b) -> decltype(pair_fp16(a, b)) {
    return pair_fp16(a, b);
  }
};
struct Bf16 {
  using Type = std::uint16_t;
  static Vec load(const Type* p) { return load_bf16(p); }
  static void store(Type* p, Vec a) { store_bf16(p, a); }
  template <class V>
  static auto pair(V a, V b) -> decltype(pair_bf16(a, b)) {
    return pair_bf16(a, b);
  }
};

/// Stores to float32 by adding to what is there.
struct SumFp32 {
  using Type = float;
  static void store(Type* p, Vec a) { STROBE_ISA::store(p, STROBE_ISA::load(p) + a); }
};

/// Calls body with the element type of a dtype.
template <class Body>
STROBE_INLINE void with_element(DType dtype, Body&& body) {
  if (dtype == DType::fp16) return body(Fp16{});
  if (dtype == DType::bf16) return body(Bf16{});
  body(Fp32{});
}

inline std::int64_t bytes_of(DType dtype) {
  return dtype == DType::fp32 ? 4 : 2;
}

/// Finds row i of a tensor, counted from some first row.
struct RowsFrom {
  RowsFrom(const Rows& rows, DType dtype, std::int64_t first)
      : stride(rows.stride * bytes_of(dtype)),
        base(static_cast<char*>(rows.data) + first * stride) {}
  void* operator()(std::int64_t i) const { return base + i * stride; }

  std::int64_t stride;
  char* base;
};

/// The `some` elements (fewer than a vector) at the end of a row.
template <class Element>
inline Vec load_tail(const typename Element::Type* source, std::int64_t some) {
  typename Element::Type tail[kWidth] = {};
  for (std::int64_t i = 0; i < some; ++i) tail[i] = source[i];
  return Element::load(tail);
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
    const Vec x = load_tail<Element>(source + i, count - i);
    float wide[kWidth];
    store(wide, x);
    check = fma(x, splat(0.0F), check);
    for (std::int64_t j = i; j < count; ++j) target[j] = wide[j - i];
  }
  for (i = count; i < padded; ++i) target[i] = 0.0F;
  return check;
}

inline bool all_zero(Vec check) {
  float lanes[kWidth];
  store(lanes, check);
  bool zero = true;
  for (int i = 0; i < kWidth; ++i) zero = zero && lanes[i] == 0.0F;
  return zero;
}

inline void prefetch(const void* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(from) + i);
}

/// `count` rows as float32 [rows][padded], zero past what there is. Returns whether every element
/// is finite.
template <class RowOf>
inline bool widen_rows(RowOf row, DType dtype, std::int64_t count, std::int64_t rows,
                       std::int64_t columns, std::int64_t padded, float* target) {
  Vec check = splat(0.0F);
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t r = 0; r < count; ++r) {
      // Between two rows of a head lie those of the others, and the core does not foresee the jump.
      prefetch(row(smaller(r + 2, count - 1)), columns * bytes_of(dtype));
      check = check + widen_row<Element>(static_cast<const typename Element::Type*>(row(r)),
                                         columns, padded, target + r * padded);
    }
  });
  for (std::int64_t i = count * padded; i < rows * padded; ++i) target[i] = 0.0F;
  return all_zero(check);
}

/// How far the strips of a tile's columns lie apart, see widen_strips. A cache line more than they
/// hold, lest the lines that a row is written to compete for the same places in the cache.
constexpr std::int64_t strip_of(std::int64_t rows) {
  return rows * kPackRows + 16;
}

/// `count` rows as float32 strips [rows][kPackRows], one for every kPackRows of `columns`, so that
/// a tile of so many columns reads one cache line after the other; zero past what there is. Returns
/// whether every element is finite.
template <class RowOf>
inline bool widen_strips(RowOf row, DType dtype, std::int64_t count, std::int64_t rows,
                         std::int64_t columns, float* target) {
  constexpr std::int64_t kPart = kWidth > kPackRows ? kWidth : kPackRows;
  const std::int64_t strip = strip_of(rows);
  const std::int64_t strips = round_up(columns, kPart) / kPackRows;
  Vec check = splat(0.0F);
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t r = 0; r < count; ++r) {
      prefetch(row(smaller(r + kPackRows, count - 1)), columns * bytes_of(dtype));
      const auto* source = static_cast<const typename Element::Type*>(row(r));
      for (std::int64_t c = 0; c < columns; c += kPart) {
        const std::int64_t some = smaller(kPart, columns - c);
        float* to = target + c / kPackRows * strip + r * kPackRows;
        if constexpr (kPart == kPackRows) {
          check = check + widen_row<Element>(source + c, some, kPart, to);
        } else {
          float part[kPart];
          check = check + widen_row<Element>(source + c, some, kPart, part);
          for (std::int64_t i = 0; i < kPart; i += kPackRows)
            __builtin_memcpy(to + i / kPackRows * strip, part + i, kPackRows * sizeof(float));
        }
      }
    }
  });
  for (std::int64_t s = 0; s < strips; ++s) {
    float* to = target + s * strip;
    for (std::int64_t i = count * kPackRows; i < rows * kPackRows; ++i) to[i] = 0.0F;
  }
  return all_zero(check);
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
  const auto move = [&](std::int64_t r, std::int64_t c) {
    target[c * target_stride + r] = source[r * source_stride + c];
  };
  for (std::int64_t r = 0; r < whole_rows; ++r) {
    for (std::int64_t c = whole_columns; c < columns; ++c) move(r, c);
  }
  for (std::int64_t r = whole_rows; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) move(r, c);
  }
}

/// `count` rows transposed to float32 [columns][lanes], the lanes past `count` zero. Returns
/// whether every element is finite.
template <class RowOf>
inline bool pack_transposed(RowOf row, DType dtype, std::int64_t count, std::int64_t columns,
                            std::int64_t lanes, float* target) {
  constexpr std::int64_t kSome = 64;  // columns at a time
  alignas(64) float staging[kPackRows * kSome];
  bool finite = true;
  for (std::int64_t r = 0; r < lanes; r += kPackRows) {
    const std::int64_t rows = smaller(kPackRows, lanes - r);
    const std::int64_t given = larger(0, smaller(rows, count - r));
    for (std::int64_t c = 0; c < columns; c += kSome) {
      const std::int64_t some = smaller(kSome, columns - c);
      const auto part = [&](std::int64_t i) -> const void* {
        return static_cast<const char*>(row(r + i)) + c * bytes_of(dtype);
      };
      finite = widen_rows(part, dtype, given, rows, some, kSome, staging) && finite;
      transpose(staging, kSome, rows, some, target + c * lanes + r, lanes);
    }
  }
  return finite;
}

/// The first `some` elements (fewer than a vector) of `a` to the end of a row.
template <class Element>
__attribute__((noinline)) inline void store_tail(typename Element::Type* target, Vec a,
                                                 std::int64_t some) {
  typename Element::Type tail[kWidth] = {};
  for (std::int64_t i = 0; i < some; ++i) tail[i] = target[i];  // a store may add to it
  Element::store(tail, a);
  for (std::int64_t i = 0; i < some; ++i) target[i] = tail[i];
}

/// source [count] times `factor` to one row of the dtype.
template <class Element>
inline void narrow_row(const float* source, std::int64_t count, float factor,
                       typename Element::Type* target) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    Element::store(target + i, load(source + i) * splat(factor));
  if (i == count) return;
  store_tail<Element>(target + i, load_tail<Fp32>(source + i, count - i) * splat(factor),
                      count - i);
}

/// source [rows][stride] times `factor` to rows of the dtype.
template <class RowOf>
inline void narrow_rows(const float* source, std::int64_t stride, std::int64_t rows,
                        std::int64_t columns, float factor, DType dtype, RowOf row) {
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t r = 0; r < rows; ++r)
      narrow_row<Element>(source + r * stride, columns, factor,
                          static_cast<typename Element::Type*>(row(r)));
  });
}

inline void narrow_row(const float* source, std::int64_t count, float factor, DType dtype,
                       void* target) {
  narrow_rows(source, count, 1, count, factor, dtype, [&](std::int64_t) { return target; });
}

/// kWidth columns of kWidth lanes, times a factor each, to the lanes' rows; if not whole, fewer.
template <class Element, bool whole>
STROBE_INLINE void store_turned_block(const float* source, std::int64_t lanes, Vec factor,
                                      std::int64_t columns, std::int64_t count,
                                      typename Element::Type* const* target, std::int64_t at) {
  // Every index into the block is a constant, so that it stays in registers.
  Vec block[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i)
    block[i] = load(source + (whole ? i : smaller(i, columns - 1)) * lanes) * factor;
  turn(block);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if (whole)
      Element::store(target[i] + at, block[i]);
    else if (i < count)
      store_tail<Element>(target[i] + at, block[i], columns);
  }
}

template <class Element>
concept Pairs = requires(Vec a) {
  Element::pair(a, a);
};

/// Twice as many columns, whole: two lie in a word, and words are what is turned.
template <class Element>
STROBE_INLINE void store_turned_pairs(const float* source, std::int64_t lanes, Vec factor,
                                      typename Element::Type* const* target, std::int64_t at) {
  Vec block[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    const float* column = source + 2 * i * lanes;
    block[i] = Element::pair(load(column) * factor, load(column + lanes) * factor);
  }
  turn(block);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) store(reinterpret_cast<float*>(target[i] + at), block[i]);
}

/// source [columns][lanes] to `count` rows, one for every lane and times its factor.
template <class Element, class RowOf>
inline void store_turned(const float* source, std::int64_t lanes, std::int64_t count,
                         std::int64_t columns, const float* factor, RowOf row) {
  for (std::int64_t first = 0; first < count; first += kWidth) {
    const std::int64_t rows = smaller(kWidth, count - first);
    const Vec factors = load(factor + first);
    typename Element::Type* target[kWidth] = {};
    for (std::int64_t r = 0; r < rows; ++r)
      target[r] = static_cast<typename Element::Type*>(row(first + r));
    std::int64_t c = 0;
    if constexpr (Pairs<Element>) {
      for (; rows == kWidth && c + 2 * kWidth <= columns; c += 2 * kWidth)
        store_turned_pairs<Element>(source + c * lanes + first, lanes, factors, target, c);
    }
    for (; c < columns; c += kWidth) {
      const std::int64_t some = smaller(kWidth, columns - c);
      const float* from = source + c * lanes + first;
      if (rows == kWidth && some == kWidth)
        store_turned_block<Element, true>(from, lanes, factors, some, rows, target, c);
      else
        store_turned_block<Element, false>(from, lanes, factors, some, rows, target, c);
    }
  }
}

template <class RowOf>
inline void store_turned(const float* source, std::int64_t lanes, std::int64_t count,
                         std::int64_t columns, const float* factor, DType dtype, RowOf row) {
  with_element(dtype, [&](auto element) {
    store_turned<decltype(element)>(source, lanes, count, columns, factor, row);
  });
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
