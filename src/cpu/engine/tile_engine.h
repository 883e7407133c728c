#pragma once
// Products by a unit that multiplies tiles of bf16: 16 rows of 32 elements by 16 pairs of rows of
// 16 columns, whose elements lie in pairs. Numbers are sums of bf16 terms, see bf16_terms.h.
//
// All packing is of 16 x 16 words, a word being two neighbours along the sum: either as they lie in
// a row (32 columns of 16 rows) or taken from two rows (16 columns of 32 rows). Left operands want
// the first as it is or the second transposed, right operands the other way round.

#include "cpu/engine/tile_background.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// The engine (see generic/engine.h) over a `Unit` that multiplies tiles, for the dtype whose
/// elements are sums of `terms` bf16.
template <class Unit, int terms>
struct TileEngine {
  using Word = std::uint16_t;
  using Setup = typename Unit::Setup;

  static constexpr int kPanel = kTileDepth;
  // Fewer where an element is large, so that two threads of a core find room in its cache.
  static constexpr int kKeyBlock = terms == 3 ? 256 : 512;
  static constexpr int kGradientKeys = 128;
  static constexpr int kKeyStep = kTileDepth;
  static constexpr int kColumnStep = kTile;
  static constexpr int kBlockRows = 2;
  static constexpr bool kOneBlock = false;
  static constexpr bool kTakesAnything = false;
  static constexpr bool kTakesPart = true;
  static_assert(kWidth == kTile);

  static std::int64_t tiles(std::int64_t n) { return (n + kTile - 1) / kTile; }
  static std::int64_t steps(std::int64_t n) { return (n + kTileDepth - 1) / kTileDepth; }
  /// Every operand is an array of tiles, the terms of a tile after each other.
  static constexpr std::int64_t kStride = terms * kTileSize;
  static std::int64_t bytes(std::int64_t count) {
    return count * kStride * static_cast<std::int64_t>(sizeof(Word));
  }
  static Word* tile(void* base, std::int64_t index) {
    return static_cast<Word*>(base) + index * kStride;
  }

  static std::int64_t key_rows_bytes(std::int64_t keys, std::int64_t depth) {
    return bytes(tiles(keys) * steps(depth));
  }
  static std::int64_t query_panel_bytes(std::int64_t depth) { return bytes(2 * steps(depth)); }
  static std::int64_t key_columns_bytes(std::int64_t keys, std::int64_t columns) {
    return bytes(tiles(columns) * steps(keys));
  }
  static std::int64_t query_rows_bytes(std::int64_t panels, std::int64_t columns) {
    return bytes(panels * tiles(columns));
  }
  static std::int64_t left_block_bytes(std::int64_t keys, std::int64_t panels) {
    return bytes(panels * tiles(keys));
  }
  static std::int64_t right_block_bytes(std::int64_t keys) { return bytes(2 * steps(keys)); }

  /// [key tile][depth step]
  template <class RowOf>
  static bool pack_key_rows(RowOf row, DType, std::int64_t count, std::int64_t keys,
                            std::int64_t depth, void* target) {
    bool finite = true;
    for (std::int64_t i = 0; i < tiles(keys); ++i) {
      for (std::int64_t k = 0; k < steps(depth); ++k)
        pack_along<false>(row, i * kTile, count, k * kTileDepth, depth,
                          tile(target, i * steps(depth) + k), finite);
    }
    return finite;
  }

  /// [depth step][lane tile]
  template <class RowOf>
  static bool pack_query_panel(RowOf row, DType, std::int64_t count, std::int64_t depth,
                               void* target) {
    bool finite = true;
    for (std::int64_t k = 0; k < steps(depth); ++k) {
      for (std::int64_t i = 0; i < 2; ++i)
        pack_along<true>(row, i * kTile, count, k * kTileDepth, depth, tile(target, k * 2 + i),
                         finite);
    }
    return finite;
  }

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    run(scores_product(keys, depth, key_rows, query_panel, c));
  }

  /// [key step][column tile]
  template <class RowOf>
  static bool pack_key_columns(RowOf row, DType, std::int64_t count, std::int64_t keys,
                               std::int64_t columns, void* target) {
    bool finite = true;
    for (std::int64_t k = 0; k < steps(keys); ++k) {
      for (std::int64_t i = 0; i < tiles(columns); i += 2)
        pack_across<true>(row, k * kTileDepth, count, i * kTile, columns,
                          tile(target, k * tiles(columns) + i), kStride, finite);
    }
    return finite;
  }

  /// [key step][lane tile]
  static STROBE_INLINE void put_right(void* block, std::int64_t, std::int64_t j, int v,
                                      const Vec (&x)[kBlockRows]) {
    Word* target = tile(block, j / kTileDepth * 2 + v) + j % kTileDepth * kTile;
    __m512 a = x[0].v;
    __m512 b = x[1].v;
#pragma GCC unroll 3
    for (int t = 0; t < terms; ++t)
      _mm512_store_si512(target + t * kTileSize, paired(next_term(a), next_term(b)));
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, const void* key_columns,
                        const void* right_block, float* c) {
    run(panel_product(columns, keys, key_columns, right_block, c));
  }

  /// [panel][key tile]
  static STROBE_INLINE void put_left(void* block, std::int64_t keys, std::int64_t panel,
                                     std::int64_t j, int v, const Vec (&x)[kBlockRows]) {
    Word* target =
        tile(block, panel * tiles(keys) + j / kTile) + j % kTile * kTileDepth + v * kTile;
#pragma GCC unroll 2
    for (int r = 0; r < kBlockRows; ++r) {
      __m512 a = x[r].v;
#pragma GCC unroll 3
      for (int t = 0; t < terms; ++t) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(target + t * kTileSize + r * kTileDepth),
                           narrowed(next_term(a)));
      }
    }
  }

  /// [panel][column tile]
  template <class RowOf>
  static bool pack_query_rows(RowOf row, DType, std::int64_t count, std::int64_t panels,
                              std::int64_t columns, void* target) {
    bool finite = true;
    for (std::int64_t p = 0; p < panels; ++p) {
      for (std::int64_t i = 0; i < tiles(columns); i += 2)
        pack_across<false>(row, p * kPanel, count, i * kTile, columns,
                           tile(target, p * tiles(columns) + i), kStride, finite);
    }
    return finite;
  }

  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* left_block, const void* query_rows, float* c,
                       std::int64_t stride) {
    run(rows_product(keys, panels, columns, left_block, query_rows, c, stride));
  }

  /// The same products, done little by little; see tile_background.h.
  class Background {
   public:
    static constexpr bool kOverlaps = true;

    void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                const void* query_panel, float* c) {
      queue_.urgent(scores_product(keys, depth, key_rows, query_panel, c));
    }
    void add_panel(std::int64_t columns, std::int64_t keys, const void* key_columns,
                   const void* right_block, float* c) {
      queue_.urgent(panel_product(columns, keys, key_columns, right_block, c));
    }
    void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                  const void* left_block, const void* query_rows, float* c, std::int64_t stride) {
      queue_.later(rows_product(keys, panels, columns, left_block, query_rows, c, stride));
    }
    void pace(std::int64_t turns) { queue_.pace(turns); }
    STROBE_INLINE void advance() { queue_.advance(); }
    void finish_urgent() { queue_.finish_urgent(); }
    void finish() { queue_.finish(); }

   private:
    TileBackground<Unit, terms> queue_;
  };

 private:
  static TileProduct scores_product(std::int64_t keys, std::int64_t depth, const void* key_rows,
                                    const void* query_panel, float* c) {
    return {.left = static_cast<const Word*>(key_rows),
            .right = static_cast<const Word*>(query_panel),
            .left_row = steps(depth) * kStride,
            .left_step = kStride,
            .right_column = kStride,
            .right_step = 2 * kStride,
            .steps = steps(depth),
            .c = c,
            .stride = kPanel,
            .rows = tiles(keys),
            .columns = 2,
            .add = false};
  }
  static TileProduct panel_product(std::int64_t columns, std::int64_t keys, const void* key_columns,
                                   const void* right_block, float* c) {
    return {.left = static_cast<const Word*>(key_columns),
            .right = static_cast<const Word*>(right_block),
            .left_row = kStride,
            .left_step = tiles(columns) * kStride,
            .right_column = kStride,
            .right_step = 2 * kStride,
            .steps = steps(keys),
            .c = c,
            .stride = kPanel,
            .rows = tiles(columns),
            .columns = 2,
            .add = true};
  }
  static TileProduct rows_product(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                                  const void* left_block, const void* query_rows, float* c,
                                  std::int64_t stride) {
    return {.left = static_cast<const Word*>(left_block),
            .right = static_cast<const Word*>(query_rows),
            .left_row = kStride,
            .left_step = tiles(keys) * kStride,
            .right_column = kStride,
            .right_step = tiles(columns) * kStride,
            .steps = panels,
            .c = c,
            .stride = stride,
            .rows = tiles(keys),
            .columns = tiles(columns),
            .add = true};
  }

  static void run(const TileProduct& product) {
    TileBackground<Unit, terms> queue;
    queue.urgent(product);
    queue.finish();
  }

  /// 16 rows from `first` on, 32 elements from `column` on, to one tile of each term.
  template <bool turned, class RowOf>
  static void pack_along(RowOf row, std::int64_t first, std::int64_t count, std::int64_t column,
                         std::int64_t columns, Word* target, bool& finite) {
    constexpr std::int64_t kBytes = terms == 3 ? 4 : 2;
    Words words[terms];
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) {
      RowPart<terms> part;
      if (first + i < count) {
        part.load(static_cast<const char*>(row(first + i)) + column * kBytes, columns - column,
                  finite);
      } else {
        for (auto& term : part.term) term = _mm512_setzero_si512();
      }
      for (int t = 0; t < terms; ++t) words[t].row[i] = part.term[t];
    }
    for (int t = 0; t < terms; ++t) {
      if (turned) words[t].transpose();
      words[t].store(target + t * kTileSize);
    }
  }

  /// 32 rows from `first` on, 32 elements from `column` on, to two tiles of each term, `next`
  /// apart; the second only if there are so many columns.
  template <bool turned, class RowOf>
  static void pack_across(RowOf row, std::int64_t first, std::int64_t count, std::int64_t column,
                          std::int64_t columns, Word* target, std::int64_t next, bool& finite) {
    constexpr std::int64_t kBytes = terms == 3 ? 4 : 2;
    const __m512i low = _mm512_load_si512(&kInTurns[0]);
    const __m512i high = _mm512_load_si512(&kInTurns[1]);
    Words words[2][terms];
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) {
      RowPart<terms> part[2];
      for (int r = 0; r < 2; ++r) {
        const std::int64_t at = first + 2 * i + r;
        if (at < count) {
          part[r].load(static_cast<const char*>(row(at)) + column * kBytes, columns - column,
                       finite);
        } else {
          for (auto& term : part[r].term) term = _mm512_setzero_si512();
        }
      }
      for (int t = 0; t < terms; ++t) {
        words[0][t].row[i] = _mm512_permutex2var_epi16(part[0].term[t], low, part[1].term[t]);
        words[1][t].row[i] = _mm512_permutex2var_epi16(part[0].term[t], high, part[1].term[t]);
      }
    }
    for (int half = 0; half < (columns - column > kTile ? 2 : 1); ++half) {
      for (int t = 0; t < terms; ++t) {
        if (turned) words[half][t].transpose();
        words[half][t].store(target + half * next + t * kTileSize);
      }
    }
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
