#pragma once
// Products for a handful of queries, where reading the keys and values is all the time it takes:
// they are read once, where they lie. Vectors run along the head dimension.

#include "cpu/generic/engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr std::int64_t kThinRows = 8;  // with more, packing pays

/// By all rows there are, not by this item's share: how they are shared out must not matter.
inline bool is_thin(const ForwardItem& item) {
  return item.group * item.heads->len_q <= kThinRows;
}

/// The engine (see generic/engine.h) for the forward pass of at most kThinRows queries.
template <class Element>
struct ThinEngine {
  using Type = typename Element::Type;
  struct Setup {};
  using Background = NoBackground;

  static constexpr int kPanel = kWidth > kThinRows ? kWidth : kThinRows;
  static constexpr int kKeyBlock = 128;
  static constexpr int kKeyStep = kWidth;
  static constexpr int kColumnStep = 1;
  static constexpr int kBlockRows = 1;
  static constexpr int kBlockVectors = 1;
  static constexpr bool kInPlace = true;
  static constexpr bool kTakesAnything = false;

  /// The "pack" of keys: where their rows are.
  struct RowTable {
    const Type* row[kKeyBlock];
  };
  struct QueryTable {
    std::int64_t count;
    float* row(std::int64_t lane, std::int64_t padded) {
      return reinterpret_cast<float*>(this + 1) + lane * padded;
    }
  };

  static std::int64_t key_rows_bytes(std::int64_t keys, std::int64_t) {
    return keys * static_cast<std::int64_t>(sizeof(const Type*));
  }
  static std::int64_t key_columns_bytes(std::int64_t keys, std::int64_t) {
    return key_rows_bytes(keys, 0);
  }
  static std::int64_t query_panel_bytes(std::int64_t depth) {
    return static_cast<std::int64_t>(sizeof(QueryTable)) +
           kThinRows * round_up(depth, kWidth) * static_cast<std::int64_t>(sizeof(float));
  }
  static std::int64_t right_block_bytes(std::int64_t keys) {
    return keys * kPanel * static_cast<std::int64_t>(sizeof(float));
  }

  template <class RowOf>
  static bool pack_key_rows(RowOf row, DType, std::int64_t count, std::int64_t keys, std::int64_t,
                            void* target) {
    // Rows past the end are hidden, so any row will do for them.
    for (std::int64_t j = 0; j < keys; ++j)
      static_cast<RowTable*>(target)->row[j] = static_cast<const Type*>(row(smaller(j, count - 1)));
    return true;
  }

  template <class RowOf>
  static bool pack_key_columns(RowOf row, DType dtype, std::int64_t count, std::int64_t keys,
                               std::int64_t columns, void* target) {
    pack_key_rows(row, dtype, count, keys, columns, target);
    Vec check = splat(0.0F);
    for (std::int64_t j = 0; j < count; ++j) {
      for_each_part(static_cast<RowTable*>(target)->row[j], columns,
                    [&](std::int64_t, Vec x) { check = fma(x, splat(0.0F), check); });
    }
    return all_zero(check);
  }

  template <class RowOf>
  static bool pack_query_panel(RowOf row, DType dtype, std::int64_t count, std::int64_t depth,
                               void* target) {
    auto* table = static_cast<QueryTable*>(target);
    table->count = count;
    const std::int64_t padded = round_up(depth, kWidth);
    widen_rows(row, dtype, count, kThinRows, depth, padded, table->row(0, padded));
    return true;
  }

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    auto* queries = static_cast<QueryTable*>(const_cast<void*>(query_panel));
    const std::int64_t padded = round_up(depth, kWidth);
    const auto* table = static_cast<const RowTable*>(key_rows);
    for (std::int64_t i = 0; i < keys * kPanel; i += kWidth) store(c + i, splat(0.0F));
    for (std::int64_t j = 0; j < keys; j += kWidth) {
      for (std::int64_t lane = 0; lane < queries->count; lane += kDots) {
        float sums[kDots][kWidth];
        dot_products(table->row + j, depth, queries->row(lane, padded), padded, sums);
        for (int l = 0; l < kDots; ++l) {
          for (int i = 0; i < kWidth; ++i) c[(j + i) * kPanel + lane + l] = sums[l][i];
        }
      }
    }
  }

  static void put_right(void* block, std::int64_t, std::int64_t j, int v,
                        const Vec (&x)[kBlockRows][kBlockVectors]) {
    store(static_cast<float*>(block) + j * kPanel + v * kWidth, x[0][0]);
  }

  // A function of its own: inlined into the whole of an item, GCC 12 keeps its sums on the stack.
  STROBE_NOT_INLINE static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t,
                                          const void* key_columns, const void* right_block,
                                          float* c, bool first) {
    const auto* table = static_cast<const RowTable*>(key_columns);
    const auto* p = static_cast<const float*>(right_block);
    for (std::int64_t column = 0; column < columns; column += kWidth) {
      Vec sums[kThinRows];
      for (auto& sum : sums) sum = splat(0.0F);
      for (std::int64_t j = 0; j < keys; ++j) {
        const Vec x = part(table->row[j], column, columns);
#pragma GCC unroll 8
        for (int l = 0; l < kThinRows; ++l) sums[l] = fma(x, splat(p[j * kPanel + l]), sums[l]);
      }
      for (int l = 0; l < kThinRows; ++l) {
        float lanes[kWidth];
        store(lanes, sums[l]);
        for (std::int64_t i = 0; i < smaller(kWidth, columns - column); ++i) {
          float& sum = c[(column + i) * kPanel + l];
          sum = first ? lanes[i] : sum + lanes[i];
        }
      }
    }
  }

 private:
  static constexpr int kDots = 4;  // queries that share the loading of a key

  static STROBE_INLINE Vec part(const Type* row, std::int64_t at, std::int64_t columns) {
    return at + kWidth <= columns ? Element::load(row + at)
                                  : load_tail<Element>(row + at, columns - at);
  }

  template <class Body>
  static STROBE_INLINE void for_each_part(const Type* row, std::int64_t columns, Body&& body) {
    for (std::int64_t at = 0; at < columns; at += kWidth) body(at, part(row, at, columns));
  }

  /// sums[l][i] = row[i] . query l, for kWidth rows.
  static void dot_products(const Type* const* row, std::int64_t depth, const float* queries,
                           std::int64_t stride, float (&sums)[kDots][kWidth]) {
    float lanes[kDots][kWidth][kWidth];
    for (int i = 0; i < kWidth; ++i) {
      Vec acc[kDots];
      for (auto& x : acc) x = splat(0.0F);
      for_each_part(row[i], depth, [&](std::int64_t at, Vec x) {
#pragma GCC unroll 4
        for (int l = 0; l < kDots; ++l) acc[l] = fma(x, load(queries + l * stride + at), acc[l]);
      });
      for (int l = 0; l < kDots; ++l) store(lanes[l][i], acc[l]);
    }
    for (int l = 0; l < kDots; ++l) {
      float turned[kWidth][kWidth];
      transpose(lanes[l][0], kWidth, kWidth, kWidth, turned[0], kWidth);
      Vec total = splat(0.0F);
      for (const auto& lane : turned) total = total + load(lane);
      store(sums[l], total);
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
