#pragma once
// Products of bf16 by the dot product of AVX512-BF16, on operands packed as TileEngine packs them:
// an instruction takes a pair of the left operand, broadcast, and sixteen columns of pairs.
// Included after cpu/simd/avx512.h.

#include "cpu/engine/tile_engine.h"
#include "cpu/generic/engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// There are no tiles, only their packing.
struct NoUnit {
  struct Setup {};
};

struct DotEngine : TileEngine<NoUnit, 1> {
  using Background = NoBackground;

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    const std::int64_t count = steps(depth);
    const auto* left = static_cast<const Word*>(key_rows);
    for (std::int64_t i = 0; i < tiles(keys); ++i, left += count * kTileSize, c += kTile * kPanel) {
      multiply<2, false>(count, {left, kTileSize},
                         {static_cast<const Word*>(query_panel), 2 * kTileSize}, c, kPanel);
    }
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t,
                        const void* key_columns, const void* right_block, float* c, bool first) {
    const std::int64_t count = steps(keys);
    const auto* left = static_cast<const Word*>(key_columns);
    const Operand right{static_cast<const Word*>(right_block), 2 * kTileSize};
    for (std::int64_t i = 0; i < tiles(columns); ++i, left += kTileSize, c += kTile * kPanel) {
      const Operand row{left, tiles(columns) * kTileSize};
      if (first)
        multiply<2, false>(count, row, right, c, kPanel);
      else
        multiply<2, true>(count, row, right, c, kPanel);
    }
  }

  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* left_block, const void* query_rows, float* c,
                       std::int64_t stride) {
    const auto* right = static_cast<const Word*>(query_rows);
    const std::int64_t across = tiles(columns);
    for (std::int64_t i = 0; i < tiles(keys); ++i, c += kTile * stride) {
      const Operand left{static_cast<const Word*>(left_block) + i * kTileSize,
                         tiles(keys) * kTileSize};
      std::int64_t j = 0;
      for (; j + 2 <= across; j += 2)
        multiply<2, true>(panels, left, {right + j * kTileSize, across * kTileSize}, c + j * kTile,
                          stride);
      if (j < across)
        multiply<1, true>(panels, left, {right + j * kTileSize, across * kTileSize}, c + j * kTile,
                          stride);
    }
  }

 private:
  /// Tiles along the sum, so many bf16 apart.
  struct Operand {
    const Word* tile;
    std::int64_t step;
  };

  /// One by `columns` tiles of c are set to or have added the sum over `count` steps. The tiles of
  /// the right operand lie side by side. Sums start from zero and are added as a whole. A function
  /// of its own: inlined into the whole of an item, GCC 12 keeps where it ends in a vector.
  template <int columns, bool add>
  STROBE_NOT_INLINE static void multiply(std::int64_t count, Operand left, Operand right, float* c,
                                         std::int64_t stride) {
    constexpr int kRows = 8 * 2 / columns;  // 16 accumulators
    for (int first = 0; first < kTile; first += kRows) {
      __m512 sums[kRows][columns];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < columns; ++v) sums[r][v] = _mm512_setzero_ps();
      }
      const Word* a = left.tile + first * kTileDepth;
      const Word* b = right.tile;
      for (std::int64_t k = 0; k < count; ++k, a += left.step, b += right.step) {
        for (std::int64_t pair = 0; pair < kTile; ++pair)
          add_pair(a + pair * 2, b + pair * kTileDepth, sums);
      }
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < columns; ++v) {
          float* target = c + (first + r) * stride + v * kTile;
          const __m512 sum = sums[r][v];
          _mm512_storeu_ps(target, add ? _mm512_add_ps(_mm512_loadu_ps(target), sum) : sum);
        }
      }
    }
  }

  /// One pair of each row times one row of pairs.
  template <int rows, int columns>
  static STROBE_INLINE void add_pair(const Word* a, const Word* b, __m512 (&sums)[rows][columns]) {
    __m512bh lanes[columns];
#pragma GCC unroll 2
    for (int v = 0; v < columns; ++v)
      lanes[v] = reinterpret_cast<__m512bh>(_mm512_load_si512(b + v * kTileSize));
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      std::int32_t word;
      __builtin_memcpy(&word, a + r * kTileDepth, sizeof word);
      const auto coefficient = reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
#pragma GCC unroll 2
      for (int v = 0; v < columns; ++v)
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], coefficient, lanes[v]);
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
