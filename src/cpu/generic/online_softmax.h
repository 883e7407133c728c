#pragma once
// Probabilities of a row that is seen block by block, before all of its logits are known.

#include "cpu/generic/engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// The sums of one panel, and what they are relative to.
template <int lanes>
struct PanelSums {
  std::int64_t columns;
  float* sums;  // [columns][lanes]
  float* base;
  float* row_sum;
  bool& started;

  /// Nothing seen yet. The first product sets the sums.
  void start() const {
    fill(base, lanes, -kInfinity);
    fill(row_sum, lanes, 0.0F);
  }
};

/// Exponents are taken relative to a base near the largest logit so far. It is moved only where a
/// logit lies more than this above it: e^8 leaves room enough in a float, and in most blocks the
/// sums need no rescaling.
constexpr float kSlack = 8.0F;

/// The largest score of every lane, or none if one is no number.
template <int lanes>
inline void find_peaks(std::int64_t rows, const float* scores, float* found) {
  constexpr int kVecs = lanes / kWidth;
  // Rows are a multiple of four; as many maxima a lane do not wait for each other.
  constexpr int kRows = 4;
  // Every index into them is a constant, so that they stay in registers.
  Vec peaks[kRows][kVecs];
  for (auto& row : peaks) {
    for (auto& peak : row) peak = splat(-kInfinity);
  }
  for (std::int64_t j = 0; j < rows; j += kRows) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v)
        peaks[r][v] = max(load(scores + (j + r) * lanes + v * kWidth), peaks[r][v]);
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    store(found + v * kWidth, max(max(peaks[0][v], peaks[1][v]), max(peaks[2][v], peaks[3][v])));
  }
}

/// Moves the base of every lane that needs it and rescales that lane's sums. Of a logit that is no
/// number, neither is the base: an engine's exponentials need not tell.
template <int lanes>
inline void advance_base(const float* peaks, float scale, const PanelSums<lanes>& panel) {
  constexpr int kVecs = lanes / kWidth;
  if (!panel.started) panel.start();
  float keep[lanes];
  bool moved = false;
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    const Vec before = load(panel.base + v * kWidth);
    const Vec top = load(peaks + v * kWidth) * splat(scale);
    const Mask higher = less(before + splat(kSlack), top);
    const Vec after = select(equal(top, top), select(higher, top, before), top);
    store(panel.base + v * kWidth, after);
    store(keep + v * kWidth,
          select(equal(before, after), splat(1.0F), exp_difference(before, after)));
  }
  if (!panel.started) return;
  for (int lane = 0; lane < lanes; ++lane) moved = moved || keep[lane] != 1.0F;
  if (!moved) return;
  for (int v = 0; v < kVecs; ++v) {
    const Vec factor = load(keep + v * kWidth);
    store(panel.row_sum + v * kWidth, load(panel.row_sum + v * kWidth) * factor);
    for (std::int64_t c = 0; c < panel.columns; ++c) {
      float* x = panel.sums + c * lanes + v * kWidth;
      store(x, load(x) * factor);
    }
  }
}

/// An engine that takes all exponentials of a block itself, or says that it cannot take these, and
/// has no background.
template <class Engine, class Exp>
concept AtOnce = requires(std::int64_t rows, float scale, const float* from, float* sum, void* to) {
  {Engine::put_exponentials(Exp(), rows, from, scale, from, sum, to) || true};
};

/// Logits to probabilities relative to the base, handed to the engine; adds them to the row sums.
/// `keep` [rows][lanes] is what dropout leaves of them, null without.
template <ForwardEngine Engine, class Exp>
STROBE_INLINE void exponentiate(std::int64_t rows, const float* scores, float scale,
                                const float* base, const float* keep, float* row_sum,
                                void* probabilities, typename Engine::Background& background) {
  constexpr int kLanes = Engine::kPanel;
  constexpr int kRows = Engine::kBlockRows;
  constexpr int kVectors = Engine::kBlockVectors;
  // Where nothing was visible yet the base is -inf; relative to 0, e^-inf is 0 all the same.
  float reference[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    reference[lane] = base[lane] == -kInfinity ? 0.0F : base[lane];
  if constexpr (AtOnce<Engine, Exp>) {
    if (keep == nullptr &&
        Engine::put_exponentials(Exp(), rows, scores, scale, reference, row_sum, probabilities))
      return;
  }
  background.pace(rows / kRows * (kLanes / kWidth / kVectors), 1);
  for (int first = 0; first < kLanes / kWidth; first += kVectors) {
    Exp exp[kVectors];
    Vec sum[kRows][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      exp[v] = Exp(scale, load(reference + (first + v) * kWidth));
      for (auto& row : sum) row[v] = splat(0.0F);
    }
    for (std::int64_t j = 0; j < rows; j += kRows) {
      Vec p[kRows][kVectors];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const std::int64_t at = (j + r) * kLanes + (first + v) * kWidth;
          p[r][v] = exp[v](load(scores + at));
          sum[r][v] = sum[r][v] + p[r][v];
          if (keep != nullptr) p[r][v] = p[r][v] * load(keep + at);
        }
      }
      Engine::put_right(probabilities, rows, j, first, p);
      background.advance();
    }
    for (int v = 0; v < kVectors; ++v) {
      Vec total = sum[0][v];
      for (int r = 1; r < kRows; ++r) total = total + sum[r][v];
      float* target = row_sum + (first + v) * kWidth;
      store(target, load(target) + total);
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
