#pragma once
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#define STROBE_INLINE inline __attribute__((always_inline))
#define STROBE_NOT_INLINE __attribute__((noinline))

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr int kWidth = Vec::kWidth;

// std::min and std::max would be shared inline functions (see head_task.h).
inline std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
inline std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

/// 1.5 * 2^23 and the bias of an exponent: what it is added to is rounded to an integer n, and the
/// low bits of the sum are those of 2^n, 0 for -127.
constexpr float kMagic = 12582912.0F + 127;

/// e^(x - base) within about one unit in the last place for x - base <= 88; exactly 1 where they
/// are equal, 0 below -87.3, NaN for NaN. The difference is never rounded as such: base is moved to
/// x by a multiple of ln 2 first, and what is left is exact. x - base itself would lose a bit for
/// every doubling of the distance, an error in every probability of the row. And the base is e,
/// not 2: folding log2(e) into the logits would round each of them once more.
STROBE_INLINE Vec exp_difference(Vec x, Vec base) {
  const Vec magic = splat(kMagic);
  const Vec distance = x - base;
  const Vec shifted = fma(distance, splat(1.44269504F), magic);
  const Vec n = shifted - magic;
  const Vec r = fma(n, splat(2.12194440e-4F), x - fma(n, splat(0.693359375F), base));
  // 1 + r + r^2 q(r), where a q of degree 4 is enough for 4e-9; its terms in pairs, which wait for
  // each other less than one after the other would.
  const Vec z = r * r;
  const Vec low = fma(r, splat(1.6666520e-1F), splat(4.9999994e-1F));
  const Vec middle = fma(r, splat(8.3688507e-3F), splat(4.1668400e-2F));
  const Vec high = fma(z, splat(1.3814321e-3F), middle);
  const Vec p = fma(z, fma(z, high, low), r) + splat(1.0F);
  return scale_by_power(p, shifted, distance, splat(-87.3F));
}

/// 2^t within 3e-6; exactly 1 at 0, 0 below -126, NaN for NaN. For what is rounded to 16 bits
/// after.
STROBE_INLINE Vec exp2_short(Vec t) {
  const Vec magic = splat(kMagic);
  const Vec shifted = t + magic;
  const Vec r = t - (shifted - magic);
  Vec p = splat(9.582852944731712e-3F);
  p = fma(p, r, splat(5.590642616152763e-2F));
  p = fma(p, r, splat(2.4024099111557007e-1F));
  p = fma(p, r, splat(6.931241750717163e-1F));
  p = fma(p, r, splat(1.0F));
  return scale_by_power(p, shifted, t, splat(-126.0F));
}

/// e^(scale * x - base): as exact as fp32 allows.
struct PreciseExp {
  static constexpr float kReach = kInfinity;

  PreciseExp() = default;
  PreciseExp(float scale_, Vec base_) : scale(splat(scale_)), base(base_) {}
  STROBE_INLINE Vec operator()(Vec x) const { return exp_difference(x * scale, base); }

  Vec scale;
  Vec base;
};

/// The same, exact enough for 16-bit types and cheaper.
struct ShortExp {
  /// The size of a base up to which it is. Its product with log2(e) is rounded by itself: for
  /// larger ones a row's only key no longer has a weight of exactly 1, which shows where gradients
  /// cancel, and for very large ones its weight is no number.
  static constexpr float kReach = 4096.0F;

  ShortExp() = default;
  ShortExp(float scale_, Vec base)
      : scale(splat(scale_ * 1.44269504F)), shift(splat(-1.44269504F) * base) {}
  STROBE_INLINE Vec operator()(Vec x) const { return exp2_short(fma(x, scale, shift)); }

  Vec scale;
  Vec shift;
};

/// Whether an exponential reaches these bases; what is infinite is of a row that saw nothing.
template <class Exp, int lanes>
STROBE_NOT_INLINE inline bool reaches(const float* base) {
  if (Exp::kReach == kInfinity) return true;
  Vec largest = splat(0.0F);
  for (int lane = 0; lane < lanes; lane += kWidth) {
    const Vec size = abs(load(base + lane));
    largest = max(select(less(size, splat(kInfinity)), size, splat(0.0F)), largest);
  }
  float sizes[kWidth];
  store(sizes, largest);
  bool all = true;
  for (const float size : sizes) all = all && size <= Exp::kReach;
  return all;
}

/// base + log x, rounded little more than once, for normal x > 0 below 2^126; NaN for NaN.
inline Vec add_log(Vec base, Vec x) {
  const Vec magic = splat(kMagic);
  const Vec n = power_below(x * splat(1.41421356F));
  const Vec f = scale_by_power(x, magic - n, n, splat(-kInfinity)) - splat(1.0F);
  const Vec z = f * f;
  Vec p = splat(7.0376836292e-2F);
  p = fma(p, f, splat(-1.1514610310e-1F));
  p = fma(p, f, splat(1.1676998740e-1F));
  p = fma(p, f, splat(-1.2420140846e-1F));
  p = fma(p, f, splat(1.4249322787e-1F));
  p = fma(p, f, splat(-1.6668057665e-1F));
  p = fma(p, f, splat(2.0000714765e-1F));
  p = fma(p, f, splat(-2.4999993993e-1F));
  p = fma(p, f, splat(3.3333331174e-1F));
  const Vec rest = f + fma(n, splat(-2.12194440e-4F), fma(p * z, f, z * splat(-0.5F)));
  // n ln 2 without that rest is exact, and what its sum with the base loses is added again.
  const Vec whole = n * splat(0.693359375F);
  const Vec sum = base + whole;
  const Vec part = sum - base;
  const Vec lost = (base - (sum - part)) + (whole - part);
  return select(equal(x, x), sum + (lost + rest), x);
}

struct Tanh {
  Vec value;
  Vec slope;  // 1 - tanh^2
};

/// tanh x and its derivative, both to a few units in the last place: relatively also near 0, where
/// the exponential form would lose the value, and far out, where 1 - tanh^2 would lose the slope.
inline Tanh tanh(Vec x) {
  const Vec z = x * x;
  Vec p = splat(-5.70498872745e-3F);
  p = fma(p, z, splat(2.06390887954e-2F));
  p = fma(p, z, splat(-5.37397155531e-2F));
  p = fma(p, z, splat(1.33314422036e-1F));
  p = fma(p, z, splat(-3.33332819422e-1F));
  const Vec near = fma(p * z, x, x);
  // |tanh| = 1 - gap with gap = 2 / (e^2|x| + 1), the sign put back after; e^86 is still a float.
  const Vec size = abs(x);
  const Vec bounded = select(less(splat(43.0F), size), splat(43.0F), size);
  const Vec gap = splat(2.0F) / (exp_difference(bounded + bounded, splat(0.0F)) + splat(1.0F));
  const Vec far = splat(1.0F) - gap;
  const Vec signed_far = select(less(x, splat(0.0F)), splat(0.0F) - far, far);
  const Mask is_near = less(size, splat(0.625F));
  return {select(is_near, near, signed_far),
          select(is_near, splat(1.0F) - near * near, gap * (splat(2.0F) - gap))};
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
