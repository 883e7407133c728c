#pragma once
// Products by fused multiply-adds on fp32: the one inner loop is a tile of kTileRows x kTileVecs
// accumulators.

#include "cpu/generic/engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// What a zero coefficient times a NaN or an infinity gives. A masked key has probability 0 and
/// must contribute nothing whatever its value holds, so where data is not finite the zeros are
/// skipped; where it is, plain arithmetic gives the same and is faster.
enum class Zeros { multiply, skip };

constexpr int kTileRows = Vec::kTileRows;
constexpr int kTileVecs = Vec::kTileVecs;
static_assert(kPackRows % kTileRows == 0);

template <int vecs>
struct Tile {
  static constexpr int kVectors = vecs;

  Vec at[kTileRows][vecs];

  STROBE_INLINE void clear() {
    for (auto& row : at) {
      for (auto& x : row) x = splat(0.0F);
    }
  }
  /// Adds to what is there. Sums over a block start from zero and are added as a whole: that
  /// rounds at the size of a block's sum, not at that of the whole, so long sums stay exact.
  STROBE_INLINE void add_to(float* c, std::int64_t stride) const {
    for (int r = 0; r < kTileRows; ++r) {
      for (int v = 0; v < vecs; ++v) {
        float* target = c + r * stride + v * kWidth;
        store(target, load(target) + at[r][v]);
      }
    }
  }
  STROBE_INLINE void store_to(float* c, std::int64_t stride) const {
    for (int r = 0; r < kTileRows; ++r) {
      for (int v = 0; v < vecs; ++v) store(c + r * stride + v * kWidth, at[r][v]);
    }
  }

  /// Every column's largest, if it is larger than what is there.
  STROBE_INLINE void raise(float* peak) const {
    for (int v = 0; v < vecs; ++v) {
      Vec top = load(peak + v * kWidth);
      for (int r = 0; r < kTileRows; ++r) top = max(at[r][v], top);
      store(peak + v * kWidth, top);
    }
  }

  enum class Skip { nothing, zero_rows, zero_lanes };

  /// at[r][:] += sum over k of a[r][k] * b[k][:], where a[r][k] = a[r * row_stride + k * a_step]
  /// and b[k] starts at b + k * b_step. row_stride is a constant so that the rows of `a` are
  /// immediate offsets.
  template <int row_stride, Skip skip>
  STROBE_INLINE void multiply(std::int64_t count, const float* a, std::int64_t a_step,
                              const float* b, std::int64_t b_step) {
    for (std::int64_t k = 0; k < count; ++k, a += a_step, b += b_step) {
      Vec lanes[vecs];
      for (int v = 0; v < vecs; ++v) lanes[v] = load(b + v * kWidth);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
        if (skip == Skip::zero_rows && a[r * row_stride] == 0.0F) continue;
        const Vec coefficient = splat(a[r * row_stride]);
#pragma GCC unroll 3
        for (int v = 0; v < vecs; ++v) {
          const Vec sum = fma(coefficient, lanes[v], at[r][v]);
          at[r][v] =
              skip == Skip::zero_lanes ? select(equal(lanes[v], splat(0.0F)), at[r][v], sum) : sum;
        }
      }
    }
  }
};

/// The engine (see generic/engine.h) of every vector type.
template <Zeros zeros>
struct FmaEngine {
  struct Setup {};
  using Background = NoBackground;

  static constexpr int kPanel = kTileVecs * kWidth;
  static constexpr int kKeyBlock = 128;
  static constexpr int kGradientKeys = 128;
  static constexpr int kKeyStep = kPackRows;
  static constexpr int kColumnStep = kPackRows > kWidth ? kPackRows : kWidth;
  static constexpr int kBlockRows = 1;
  static constexpr int kBlockVectors = 1;
  static constexpr bool kOneBlock = true;
  static constexpr bool kInPlace = true;
  static constexpr bool kTakesAnything = zeros == Zeros::skip;

  static std::int64_t floats(std::int64_t count) { return count * 4; }
  static std::int64_t padded(std::int64_t columns) { return round_up(columns, kColumnStep); }

  static std::int64_t key_rows_bytes(std::int64_t keys, std::int64_t depth) {
    return floats(keys * depth);
  }
  static std::int64_t query_panel_bytes(std::int64_t depth) { return floats(kPanel * depth); }
  static std::int64_t key_columns_bytes(std::int64_t keys, std::int64_t columns) {
    return floats(strip_of(keys) * padded(columns) / kPackRows);
  }
  static std::int64_t query_rows_bytes(std::int64_t panels, std::int64_t columns) {
    return floats(panels * kPanel * padded(columns));
  }
  static std::int64_t left_block_bytes(std::int64_t keys, std::int64_t panels) {
    return floats(panels * keys * kPanel);
  }
  static std::int64_t right_block_bytes(std::int64_t keys) { return floats(keys * kPanel); }

  /// [keys / kPackRows][depth][kPackRows]
  template <class RowOf>
  static bool pack_key_rows(RowOf row, DType dtype, std::int64_t count, std::int64_t keys,
                            std::int64_t depth, void* target) {
    bool finite = true;
    for (std::int64_t r = 0; r < keys; r += kPackRows) {
      const auto some = [&](std::int64_t i) { return row(r + i); };
      finite = pack_transposed(some, dtype, larger(0, count - r), depth, kPackRows,
                               static_cast<float*>(target) + r * depth) &&
               finite;
    }
    return finite;
  }

  /// [depth][kPanel]
  template <class RowOf>
  static bool pack_query_panel(RowOf row, DType dtype, std::int64_t count, std::int64_t depth,
                               void* target) {
    return pack_transposed(row, dtype, count, depth, kPanel, static_cast<float*>(target));
  }

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    multiply_scores(keys, depth, key_rows, query_panel, c, [](const auto&) {});
  }

  /// [padded / kPackRows] strips [keys][kPackRows]
  template <class RowOf>
  static bool pack_key_columns(RowOf row, DType dtype, std::int64_t count, std::int64_t keys,
                               std::int64_t columns, void* target) {
    return widen_strips(row, dtype, count, keys, columns, static_cast<float*>(target));
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t packed_keys,
                        const void* key_columns, const void* block, float* c, bool first) {
    constexpr auto kSkip =
        zeros == Zeros::skip ? Tile<kTileVecs>::Skip::zero_lanes : Tile<kTileVecs>::Skip::nothing;
    for (std::int64_t column = 0; column < columns; column += kTileRows) {
      const float* a = static_cast<const float*>(key_columns) +
                       column / kPackRows * strip_of(packed_keys) + column % kPackRows;
      Tile<kTileVecs> tile;
      tile.clear();
      tile.template multiply<1, kSkip>(keys, a, kPackRows, static_cast<const float*>(block),
                                       kPanel);
      if (first)
        tile.store_to(c + column * kPanel, kPanel);
      else
        tile.add_to(c + column * kPanel, kPanel);
    }
  }

  /// [panel][keys][kPanel]
  static float* left_panel(void* block, std::int64_t keys, std::int64_t panel) {
    return static_cast<float*>(block) + panel * keys * kPanel;
  }
  static void put_left(void* block, std::int64_t keys, std::int64_t panel, std::int64_t j, int v,
                       const Vec (&x)[kBlockRows][kBlockVectors]) {
    store(left_panel(block, keys, panel) + j * kPanel + v * kWidth, x[0][0]);
  }
  static void put_right(void* block, std::int64_t keys, std::int64_t j, int v,
                        const Vec (&x)[kBlockRows][kBlockVectors]) {
    put_left(block, keys, 0, j, v, x);
  }
  /// A panel of a left block serves as a right one.
  static void put_both(void* left, void*, std::int64_t keys, std::int64_t panel, std::int64_t j,
                       int v, const Vec (&x)[kBlockRows][kBlockVectors]) {
    put_left(left, keys, panel, j, v, x);
  }

  /// Slabs [panels * kPanel][columns of a tile], so that those that one tile after the other reads
  /// lie together in the nearest cache.
  template <class RowOf>
  static bool pack_query_rows(RowOf row, DType dtype, std::int64_t count, std::int64_t panels,
                              std::int64_t columns, void* target) {
    const std::int64_t rows = panels * kPanel;
    bool finite = true;
    for_each_slab(columns, [&](std::int64_t column, auto tile) {
      constexpr int kColumns = decltype(tile)::kVectors * kWidth;
      const auto part = [&](std::int64_t i) -> const void* {
        return static_cast<const char*>(row(i)) + column * bytes_of(dtype);
      };
      finite = widen_rows(part, dtype, count, rows, smaller(kColumns, columns - column), kColumns,
                          static_cast<float*>(target) + column * rows) &&
               finite;
    });
    return finite;
  }

  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* block, const void* query_rows, float* c, std::int64_t stride) {
    for_each_slab(columns, [&](std::int64_t column, auto tile) {
      const auto* slab = static_cast<const float*>(query_rows) + column * panels * kPanel;
      add_columns(keys, panels, static_cast<const float*>(block), slab, tile, c + column, stride);
    });
  }

 protected:
  /// and_then(tile) may look at the scores while they are in registers.
  template <class AndThen>
  static STROBE_INLINE void multiply_scores(std::int64_t keys, std::int64_t depth,
                                            const void* key_rows, const void* query_panel, float* c,
                                            AndThen&& and_then) {
    for (std::int64_t r = 0; r < keys; r += kTileRows) {
      const float* a =
          static_cast<const float*>(key_rows) + r / kPackRows * kPackRows * depth + r % kPackRows;
      Tile<kTileVecs> tile;
      tile.clear();
      tile.template multiply<1, Tile<kTileVecs>::Skip::nothing>(
          depth, a, kPackRows, static_cast<const float*>(query_panel), kPanel);
      tile.store_to(c + r * kPanel, kPanel);
      and_then(tile);
    }
  }

  /// Calls body with the first column of every slab and a tile as wide.
  template <class Body>
  static STROBE_INLINE void for_each_slab(std::int64_t columns, Body&& body) {
    const std::int64_t width = padded(columns);
    std::int64_t column = 0;
    while (column < width) {
      const std::int64_t vectors = (width - column) / kWidth;
      const auto take = [&](auto tile) {
        body(column, tile);
        column += decltype(tile)::kVectors * kWidth;
      };
      // A tile of one vector loads more than it multiplies: four are better twice two.
      if (vectors >= kTileVecs && vectors != 4)
        take(Tile<kTileVecs>());
      else if (vectors >= 2)
        take(Tile<2>());
      else
        take(Tile<1>());
    }
  }

  template <int vecs>
  static void add_columns(std::int64_t keys, std::int64_t panels, const float* a, const float* slab,
                          Tile<vecs> tile, float* c, std::int64_t stride) {
    constexpr auto kSkip =
        zeros == Zeros::skip ? Tile<vecs>::Skip::zero_rows : Tile<vecs>::Skip::nothing;
    constexpr int kColumns = vecs * kWidth;
    for (std::int64_t r = 0; r < keys; r += kTileRows) {
      tile.clear();
      for (std::int64_t panel = 0; panel < panels; ++panel) {
        tile.template multiply<kPanel, kSkip>(kPanel, a + (panel * keys + r) * kPanel, 1,
                                              slab + panel * kPanel * kColumns, kColumns);
      }
      tile.add_to(c + r * stride, stride);
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
