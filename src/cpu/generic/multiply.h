#pragma once
// The one inner loop everything is made of: a tile of kTileRows x kTileVecs accumulators.

#include "cpu/generic/pack.h"

#define STROBE_INLINE inline __attribute__((always_inline))

namespace strobe::cpu::STROBE_ISA {
namespace {

/// What a zero coefficient times a NaN or an infinity gives. A masked key has probability 0 and
/// must contribute nothing whatever its value holds, so where data is not finite the zeros are
/// skipped; where it is, plain arithmetic gives the same and is faster.
enum class Zeros { multiply, skip_broadcast, skip_lanes };

template <int vecs>
struct Tile {
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

  /// at[r][:] += sum over k of a[r][k] * b[k][:], where a[r][k] = a[r * row_stride + k * a_step]
  /// and b[k] starts at b + k * b_step. row_stride is a constant so that the rows of `a` are
  /// immediate offsets.
  template <int row_stride, Zeros zeros>
  STROBE_INLINE void multiply(std::int64_t count, const float* a, std::int64_t a_step,
                              const float* b, std::int64_t b_step) {
    for (std::int64_t k = 0; k < count; ++k, a += a_step, b += b_step) {
      Vec lanes[vecs];
      for (int v = 0; v < vecs; ++v) lanes[v] = load(b + v * kWidth);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
        if (zeros == Zeros::skip_broadcast && a[r * row_stride] == 0.0F) continue;
        const Vec coefficient = splat(a[r * row_stride]);
#pragma GCC unroll 3
        for (int v = 0; v < vecs; ++v) {
          const Vec sum = fma(coefficient, lanes[v], at[r][v]);
          at[r][v] = zeros == Zeros::skip_lanes
                         ? select(equal(lanes[v], splat(0.0F)), at[r][v], sum)
                         : sum;
        }
      }
    }
  }
};

/// c[rows][kPanel] = scale * tiles . panel: logits of `rows` keys (packed by pack_tiles, `depth`
/// columns) against the panel's queries [depth][kPanel].
inline void multiply_scores(std::int64_t rows, std::int64_t depth, const float* tiles,
                            const float* panel, float scale, float* c) {
  for (std::int64_t r = 0; r < rows; r += kTileRows) {
    const float* a = tiles + r / kPackRows * kPackRows * depth + r % kPackRows;
    Tile<kTileVecs> tile;
    tile.clear();
    tile.template multiply<1, Zeros::multiply>(depth, a, kPackRows, panel, kPanel);
    for (auto& row : tile.at) {
      for (auto& x : row) x = x * splat(scale);
    }
    tile.store_to(c + r * kPanel, kPanel);
  }
}

/// c[columns][kPanel] = c * keep + sum over k of a[k][column] * b[k][:]: values (or keys) against
/// the panel's probabilities (or their gradients) b [count][kPanel]. `columns` and a_stride are
/// padded to whole tiles; `keep` [kPanel] rescales what was there, null leaves it.
template <Zeros zeros>
inline void accumulate_panel(std::int64_t columns, std::int64_t count, const float* a,
                             std::int64_t a_stride, const float* b, const float* keep, float* c) {
  for (std::int64_t column = 0; column < columns; column += kTileRows) {
    Tile<kTileVecs> tile;
    tile.clear();
    tile.template multiply<1, zeros>(count, a + column, a_stride, b, kPanel);
    float* target = c + column * kPanel;
    if (keep != nullptr) {
      for (int r = 0; r < kTileRows; ++r) {
        for (int v = 0; v < kTileVecs; ++v) {
          const Vec before = load(target + r * kPanel + v * kWidth);
          tile.at[r][v] = fma(before, load(keep + v * kWidth), tile.at[r][v]);
        }
      }
      tile.store_to(target, kPanel);
    } else {
      tile.add_to(target, kPanel);
    }
  }
}

inline void accumulate_panel(bool finite, std::int64_t columns, std::int64_t count, const float* a,
                             std::int64_t a_stride, const float* b, const float* keep, float* c) {
  if (finite)
    accumulate_panel<Zeros::multiply>(columns, count, a, a_stride, b, keep, c);
  else
    accumulate_panel<Zeros::skip_lanes>(columns, count, a, a_stride, b, keep, c);
}

/// c[rows][columns] += sum over queries of scores[row][query] * b[query][:], with scores
/// [rows][kPanel] and `columns` a multiple of the vector width, b and c of that stride.
template <int vecs, Zeros zeros>
inline void accumulate_columns(std::int64_t rows, std::int64_t count, const float* scores,
                               const float* b, std::int64_t stride, float* c) {
  for (std::int64_t r = 0; r < rows; r += kTileRows) {
    Tile<vecs> tile;
    tile.clear();
    tile.template multiply<kPanel, zeros>(count, scores + r * kPanel, 1, b, stride);
    tile.add_to(c + r * stride, stride);
  }
}

template <Zeros zeros>
inline void accumulate_rows(std::int64_t rows, std::int64_t count, const float* scores,
                            const float* b, std::int64_t columns, float* c) {
  std::int64_t column = 0;
  for (; column + kPanel <= columns; column += kPanel) {
    accumulate_columns<kTileVecs, zeros>(rows, count, scores, b + column, columns, c + column);
  }
  for (; column < columns; column += kWidth) {
    accumulate_columns<1, zeros>(rows, count, scores, b + column, columns, c + column);
  }
}

inline void accumulate_rows(bool finite, std::int64_t rows, std::int64_t count, const float* scores,
                            const float* b, std::int64_t columns, float* c) {
  if (finite)
    accumulate_rows<Zeros::multiply>(rows, count, scores, b, columns, c);
  else
    accumulate_rows<Zeros::skip_broadcast>(rows, count, scores, b, columns, c);
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
