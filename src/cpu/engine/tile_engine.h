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
  static constexpr int kBlockVectors = 2;
  static constexpr bool kOneBlock = false;
  static constexpr bool kInPlace = false;
  static constexpr bool kTakesAnything = false;
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
    FiniteCheck finite;
    for (std::int64_t i = 0; i < tiles(keys); ++i) {
      for (std::int64_t k = 0; k < steps(depth); ++k)
        pack_along(row, i * kTile, count, k * kTileDepth, depth, tile(target, i * steps(depth) + k),
                   finite);
    }
    return finite.all();
  }

  /// [depth step][lane tile]
  template <class RowOf>
  static bool pack_query_panel(RowOf row, DType, std::int64_t count, std::int64_t depth,
                               void* target) {
    FiniteCheck finite;
    for (std::int64_t k = 0; k < steps(depth); ++k) {
      for (std::int64_t i = 0; i < 2; ++i)
        pack_along_turned(row, i * kTile, count, k * kTileDepth, depth, tile(target, k * 2 + i),
                          finite);
    }
    return finite.all();
  }

  static void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                     const void* query_panel, float* c) {
    run(scores_product(keys, depth, key_rows, query_panel, c));
  }

  /// [key step][column tile]
  template <class RowOf>
  static bool pack_key_columns(RowOf row, DType, std::int64_t count, std::int64_t keys,
                               std::int64_t columns, void* target) {
    FiniteCheck finite;
    for (std::int64_t k = 0; k < steps(keys); ++k) {
      for (std::int64_t i = 0; i < tiles(columns); i += 2)
        pack_across_turned(row, k * kTileDepth, count, i * kTile, columns,
                           tile(target, k * tiles(columns) + i), finite);
    }
    return finite.all();
  }

  /// [key step][lane tile]
  static STROBE_INLINE void put_right(void* block, std::int64_t keys, std::int64_t j, int,
                                      const Vec (&x)[kBlockRows][kBlockVectors]) {
    put<false, true>(nullptr, block, keys, 0, j, x);
  }

  static void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t,
                        const void* key_columns, const void* right_block, float* c, bool first) {
    run(panel_product(columns, keys, key_columns, right_block, c, first));
  }

  /// [panel][key tile]
  static STROBE_INLINE void put_left(void* block, std::int64_t keys, std::int64_t panel,
                                     std::int64_t j, int,
                                     const Vec (&x)[kBlockRows][kBlockVectors]) {
    put<true, false>(block, nullptr, keys, panel, j, x);
  }
  static STROBE_INLINE void put_both(void* left, void* right, std::int64_t keys, std::int64_t panel,
                                     std::int64_t j, int,
                                     const Vec (&x)[kBlockRows][kBlockVectors]) {
    put<true, true>(left, right, keys, panel, j, x);
  }

  /// [panel][column tile]
  template <class RowOf>
  static bool pack_query_rows(RowOf row, DType, std::int64_t count, std::int64_t panels,
                              std::int64_t columns, void* target) {
    FiniteCheck finite;
    for (std::int64_t p = 0; p < panels; ++p) {
      for (std::int64_t i = 0; i < tiles(columns); i += 2)
        pack_across(row, p * kPanel, count, i * kTile, columns,
                    tile(target, p * tiles(columns) + i), finite);
    }
    return finite.all();
  }

  static void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                       const void* left_block, const void* query_rows, float* c,
                       std::int64_t stride) {
    run(rows_product(keys, panels, columns, left_block, query_rows, c, stride, false));
  }

  /// The same products, done little by little; see tile_background.h.
  class Background {
   public:
    static constexpr bool kOverlaps = true;

    void scores(std::int64_t keys, std::int64_t depth, const void* key_rows,
                const void* query_panel, float* c) {
      queue_.urgent(scores_product(keys, depth, key_rows, query_panel, c));
    }
    void add_panel(std::int64_t columns, std::int64_t keys, std::int64_t, const void* key_columns,
                   const void* right_block, float* c, bool first) {
      queue_.urgent(panel_product(columns, keys, key_columns, right_block, c, first));
    }
    void add_rows(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                  const void* left_block, const void* query_rows, float* c, std::int64_t stride,
                  bool first) {
      queue_.later(rows_product(keys, panels, columns, left_block, query_rows, c, stride, first));
    }
    void pace(std::int64_t turns, std::int64_t rounds) { queue_.pace(turns, rounds); }
    STROBE_INLINE void advance() { queue_.advance(); }
    void finish_urgent() { queue_.finish_urgent(); }
    void finish() { queue_.finish(); }

   private:
    TileBackground<Unit, terms> queue_;
  };

 private:
  /// Two rows of 32 queries. A word of the left operand pairs queries that lie 16 apart, as
  /// pack_query_rows does; one of the right pairs the two rows.
  template <bool left, bool right>
  static STROBE_INLINE void put(void* left_block, void* right_block, std::int64_t keys,
                                std::int64_t panel, std::int64_t j,
                                const Vec (&x)[kBlockRows][kBlockVectors]) {
    Word* rows =
        left ? tile(left_block, panel * tiles(keys) + j / kTile) + j % kTile * kTileDepth : nullptr;
    Word* pairs = right ? tile(right_block, j / kTileDepth * 2) + j % kTileDepth * kTile : nullptr;
    __m512 a[2] = {x[0][0].v, x[0][1].v};
    __m512 b[2] = {x[1][0].v, x[1][1].v};
#pragma GCC unroll 3
    for (int t = 0; t < terms; ++t) {
      const __m512i a_term[2] = {cut_term<terms>(t, a[0]), cut_term<terms>(t, a[1])};
      const __m512i b_term[2] = {cut_term<terms>(t, b[0]), cut_term<terms>(t, b[1])};
      if (left) {
        _mm512_store_si512(rows + t * kTileSize, paired(a_term[0], a_term[1]));
        _mm512_store_si512(rows + t * kTileSize + kTileDepth, paired(b_term[0], b_term[1]));
      }
      if (right) {
        _mm512_store_si512(pairs + t * kTileSize, paired(a_term[0], b_term[0]));
        _mm512_store_si512(pairs + t * kTileSize + kStride, paired(a_term[1], b_term[1]));
      }
    }
  }

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
            .columns = 2};
  }
  static TileProduct panel_product(std::int64_t columns, std::int64_t keys, const void* key_columns,
                                   const void* right_block, float* c, bool first) {
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
            .into = first ? Into::nothing : Into::sums};
  }
  /// Many heads that share keys may have few queries each: then six roundings for a head's share of
  /// the sums are more than the unfused computation has.
  static Into sums_of_rows(std::int64_t panels) {
    return terms == 3 && panels == 1 ? Into::whole : Into::sums;
  }
  static TileProduct rows_product(std::int64_t keys, std::int64_t panels, std::int64_t columns,
                                  const void* left_block, const void* query_rows, float* c,
                                  std::int64_t stride, bool first) {
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
            .into = first ? Into::nothing : sums_of_rows(panels)};
  }

  static void run(const TileProduct& product) {
    TileBackground<Unit, terms> queue;
    queue.urgent(product);
    queue.finish();
  }

  // Packs are inlined, so that what a FiniteCheck has seen stays in a register.

  /// 16 rows from `first` on, 32 elements from `column` on, to one tile of each term.
  template <class RowOf>
  static STROBE_INLINE void pack_along(RowOf row, std::int64_t first, std::int64_t count,
                                       std::int64_t column, std::int64_t columns, Word* target,
                                       FiniteCheck& finite) {
    for (std::int64_t i = 0; i < kTile; ++i) {
      load_part(row, first + i, count, column, columns, finite)
          .store(target + i * kTileDepth, kTileSize);
    }
  }

  /// The same, turned.
  template <class RowOf>
  static STROBE_INLINE void pack_along_turned(RowOf row, std::int64_t first, std::int64_t count,
                                              std::int64_t column, std::int64_t columns,
                                              Word* target, FiniteCheck& finite) {
    const TurnedWords a(row, first, 1, count, column, columns);
    if constexpr (terms == 1) {
#pragma GCC unroll 16
      for (int i = 0; i < kTile; ++i) {
        finite.see(a.bits(i));
        _mm512_store_si512(target + i * kTileDepth, a.bits(i));
      }
    } else {
      store_pairs(a, TurnedWords(row, first, 1, count, column + kTile, columns), target, finite);
    }
  }

  /// 32 rows from `first` on, 32 elements from `column` on, to two tiles of each term, the second
  /// only if there are so many columns. A word pairs rows that lie 16 apart, as put_left does.
  template <class RowOf>
  static STROBE_INLINE void pack_across(RowOf row, std::int64_t first, std::int64_t count,
                                        std::int64_t column, std::int64_t columns, Word* target,
                                        FiniteCheck& finite) {
    const bool both = columns - column > kTile;
    for (std::int64_t i = 0; i < kTile; ++i) {
      const RowPart<terms> a = load_part(row, first + i, count, column, columns, finite);
      const RowPart<terms> b = load_part(row, first + i + kTile, count, column, columns, finite);
#pragma GCC unroll 3
      for (int t = 0; t < terms; ++t) {
        Word* words = target + t * kTileSize + i * kTileDepth;
        _mm512_store_si512(words, a.first_columns(t, b));
        if (both) _mm512_store_si512(words + kStride, a.last_columns(t, b));
      }
    }
  }

  /// The same, turned. A word pairs two neighbouring rows, as put_right does.
  template <class RowOf>
  static STROBE_INLINE void pack_across_turned(RowOf row, std::int64_t first, std::int64_t count,
                                               std::int64_t column, std::int64_t columns,
                                               Word* target, FiniteCheck& finite) {
    const bool both = columns - column > kTile;
    const TurnedWords even(row, first, 2, count, column, columns);
    const TurnedWords odd(row, first + 1, 2, count, column, columns);
    if constexpr (terms == 1) {  // a word has two columns
#pragma GCC unroll 16
      for (int i = 0; i < kTile; ++i) {
        if (i == kTile / 2 && !both) return;
        Word* words = target + i / (kTile / 2) * kStride + i % (kTile / 2) * 2 * kTileDepth;
        finite.see(even.bits(i));
        finite.see(odd.bits(i));
        _mm512_store_si512(words, paired_low(even.bits(i), odd.bits(i)));
        _mm512_store_si512(words + kTileDepth, paired(even.bits(i), odd.bits(i)));
      }
    } else {
      store_pairs(even, odd, target, finite);
      if (!both) return;
      store_pairs(TurnedWords(row, first, 2, count, column + kTile, columns),
                  TurnedWords(row, first + 1, 2, count, column + kTile, columns), target + kStride,
                  finite);
    }
  }

  /// 16 words from `column` on of every `step`th row from `first` on, transposed.
  struct TurnedWords {
    template <class RowOf>
    STROBE_INLINE TurnedWords(RowOf row, std::int64_t first, std::int64_t step, std::int64_t count,
                              std::int64_t column, std::int64_t columns) {
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kTile; ++i) {
        const std::int64_t at = first + i * step;
        words[i] = at < count ? load_words<terms>(element(row, at, column), columns - column)
                              : splat(0.0F);
      }
      turn(words);
    }
    __m512i bits(int i) const {
      return _mm512_castps_si512(words[i].v);
    }

    Vec words[kTile];
  };

  /// Words of every term, to one tile of each.
  static STROBE_INLINE void store_pairs(const TurnedWords& a, const TurnedWords& b, Word* target,
                                        FiniteCheck& finite) {
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i)
      RowPart<terms>::pairs(a.words[i].v, b.words[i].v, finite)
          .store(target + i * kTileDepth, kTileSize);
  }

  template <class RowOf>
  static STROBE_INLINE const void* element(RowOf row, std::int64_t i, std::int64_t column) {
    return static_cast<const char*>(row(i)) + column * (terms == 3 ? 4 : 2);
  }

  template <class RowOf>
  static STROBE_INLINE RowPart<terms> load_part(RowOf row, std::int64_t i, std::int64_t count,
                                                std::int64_t column, std::int64_t columns,
                                                FiniteCheck& finite) {
    if (i >= count) return RowPart<terms>::nothing();
    return RowPart<terms>::load(element(row, i, column), columns - column, finite);
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
