#pragma once
// Exponentials of AVX-512, some vectors beside each other. One after the other each waits for
// itself, for the core looks ahead no further than four of them; and a fused multiply-add writes
// over one of its operands, so that constants are copied, which takes a slot of the multipliers.
// Loading one again takes none.
//
// Included after cpu/simd/avx512.h, in the namespace STROBE_ISA names.

#include "cpu/generic/math.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr int kBeside = 4;

/// Does a step for each of the vectors.
template <class Step>
STROBE_INLINE void beside(Step&& step) {
#pragma GCC unroll 4
  for (int i = 0; i < kBeside; ++i) step(i);
}

/// In a register that may be written over.
STROBE_INLINE Vec loaded(const float (&x)[kWidth]) {
  Vec result;
  __asm__ volatile("vmovups %1, %0" : "=v"(result.v) : "m"(x));
  return result;
}
STROBE_INLINE Vec loaded(const float& x) {
  Vec result;
  __asm__ volatile("vbroadcastss %1, %0" : "=v"(result.v) : "m"(x));
  return result;
}

/// The power of two whose exponent the low bits of `magic` hold.
STROBE_INLINE Vec power_of(Vec magic) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(magic.v), 23))};
}
/// Where x is at least `least`, or no number.
STROBE_INLINE Mask not_below(Vec x, Vec least) {
  return _mm512_cmp_ps_mask(x.v, least.v, _CMP_NLT_UQ);
}

/// exp_difference, kBeside vectors of the same lanes at a time, but 0 below -87.
struct PreciseExpBeside {
  PreciseExpBeside(float scale_, const float* base_) : scale(splat(scale_)), base(load(base_)) {
    store(base_again, base);
  }

  STROBE_INLINE void operator()(Vec (&x)[kBeside]) const {
    static constexpr float kLow = 4.9999994e-1F;
    static constexpr float kHigh = 4.1668400e-2F;
    const Vec magic = splat(kMagic);
    const Vec least = splat(kMagic - 125);
    Vec shifted[kBeside], n[kBeside], r[kBeside], z[kBeside], low[kBeside], high[kBeside];
    beside([&](int i) { x[i] = x[i] * scale; });
    beside([&](int i) { shifted[i] = fma(x[i] - base, splat(1.44269504F), magic); });
    beside([&](int i) { n[i] = shifted[i] - magic; });
    beside([&](int i) { r[i] = x[i] - fma(n[i], splat(0.693359375F), loaded(base_again)); });
    beside([&](int i) { r[i] = fma(n[i], splat(2.12194440e-4F), r[i]); });
    beside([&](int i) { z[i] = r[i] * r[i]; });
    beside([&](int i) { high[i] = fma(r[i], splat(8.3688507e-3F), loaded(kHigh)); });
    beside([&](int i) { low[i] = fma(r[i], splat(1.6666520e-1F), loaded(kLow)); });
    beside([&](int i) { high[i] = fma(z[i], splat(1.3814321e-3F), high[i]); });
    beside([&](int i) { low[i] = fma(z[i], high[i], low[i]); });
    beside([&](int i) { r[i] = fma(z[i], low[i], r[i]); });
    beside([&](int i) {
      const Vec power = power_of(shifted[i]);
      x[i] = {_mm512_maskz_fmadd_ps(not_below(shifted[i], least), r[i].v, power.v, power.v)};
    });
  }

  Vec scale;
  Vec base;
  float base_again[kWidth];
};

/// exp2_short of what ShortExp takes it of, likewise.
struct ShortExpBeside {
  ShortExpBeside(float scale_, const float* base) : scale(splat(scale_ * 1.44269504F)) {
    store(shift, splat(-1.44269504F) * load(base));
  }

  STROBE_INLINE void operator()(Vec (&x)[kBeside]) const {
    static constexpr float kHighest = 9.582852944731712e-3F;
    const Vec magic = splat(kMagic);
    Vec shifted[kBeside], r[kBeside], p[kBeside];
    beside([&](int i) { x[i] = fma(x[i], scale, loaded(shift)); });
    beside([&](int i) { shifted[i] = x[i] + magic; });
    beside([&](int i) { r[i] = x[i] - (shifted[i] - magic); });
    beside([&](int i) { p[i] = fma(loaded(kHighest), r[i], splat(5.590642616152763e-2F)); });
    beside([&](int i) { p[i] = fma(p[i], r[i], splat(2.4024099111557007e-1F)); });
    beside([&](int i) { p[i] = fma(p[i], r[i], splat(6.931241750717163e-1F)); });
    beside([&](int i) { p[i] = fma(p[i], r[i], splat(1.0F)); });
    beside([&](int i) {
      x[i] = {_mm512_maskz_mul_ps(not_below(x[i], splat(-126.0F)), p[i].v, power_of(shifted[i]).v)};
    });
  }

  Vec scale;
  float shift[kWidth];
};

/// p[rows][lanes] = e^(scale * x[rows][lanes] - base[lanes]), a multiple of kBeside rows; adds the
/// sum of the rows to sum[lanes]. p may be x.
template <class ExpBeside, int lanes>
inline void exp_rows(std::int64_t rows, const float* x, float scale, const float* base, float* sum,
                     float* p) {
  for (int first = 0; first < lanes; first += kWidth) {
    const ExpBeside exp(scale, base + first);
    Vec total = splat(0.0F);  // a block's sum by itself loses less
    for (std::int64_t j = 0; j < rows; j += kBeside) {
      const std::int64_t at = j * lanes + first;
      Vec row[kBeside];
      beside([&](int i) { row[i] = load(x + at + i * lanes); });
      exp(row);
      beside([&](int i) { store(p + at + i * lanes, row[i]); });
      total = total + ((row[0] + row[1]) + (row[2] + row[3]));
    }
    store(sum + first, load(sum + first) + total);
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
