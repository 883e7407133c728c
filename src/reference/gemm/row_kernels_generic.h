#pragma once
// The row kernels once, for whatever instruction set the file that includes this is compiled for.
// Vectors are the compiler's own, of one length everywhere; it cuts them to what the CPU has.
// Everything is local to the file, so that no other one can be given this one's code.

#include "reference/gemm/row_kernels.h"

namespace strobe::reference::gemm::STROBE_ISA {
namespace {

constexpr int kLanes = 16;
constexpr float kInfinity = __builtin_inff();
using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Halves = std::uint16_t __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));

#define STROBE_INLINE [[gnu::always_inline]] inline

STROBE_INLINE Vec splat(float value) {
  return value - Vec{};
}

STROBE_INLINE Vec load(const float* values) {
  Vec vec;
  __builtin_memcpy(&vec, values, sizeof vec);
  return vec;
}

/// The first `count` lanes, the others `rest`.
STROBE_INLINE Vec load_some(const float* values, std::int64_t count, float rest) {
  Vec vec = splat(rest);
  for (std::int64_t i = 0; i < count; ++i) vec[i] = values[i];
  return vec;
}

STROBE_INLINE void store(float* values, Vec vec) {
  __builtin_memcpy(values, &vec, sizeof vec);
}

STROBE_INLINE void store_some(float* values, std::int64_t count, Vec vec) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = vec[i];
}

/// values = body(values), a vector at a time.
template <class Body>
STROBE_INLINE void for_each(float* values, std::int64_t count, float rest, Body&& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(values + i, body(i, load(values + i)));
  if (i < count) store_some(values + i, count - i, body(i, load_some(values + i, count - i, rest)));
}

STROBE_INLINE float sum_of(Vec vec) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) vec[i] += vec[i + half];
  }
  return vec[0];
}

/// e^x within about a unit in the last place for x <= 0: exactly 1 for 0, 0 below -87.3, NaN for
/// NaN. x = n ln 2 + r, a polynomial for e^r, and n into the exponent.
STROBE_INLINE Vec exponential(Vec x) {
  const Vec magic = splat(12582912.0F);  // 1.5 · 2^23: adding it rounds to an integer
  const Vec shifted = x * 1.44269504F + magic;
  const Vec n = shifted - magic;
  const Vec r = x - n * 0.693359375F + n * 2.12194440e-4F;
  Vec p = splat(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const Vec power = __builtin_bit_cast(Vec, (__builtin_bit_cast(Words, shifted) + 127U) << 23);
  return x < -87.3F ? Vec{} : p * power;
}

float scale(float* values, std::int64_t count, float factor) {
  Vec largest = splat(-kInfinity);
  for_each(
      values, count, 0, [&](std::int64_t i, Vec x) __attribute__((always_inline)) {
        const Vec scaled = x * factor;
        if (i + kLanes <= count) largest = scaled > largest ? scaled : largest;
        return scaled;
      });
  float result = -kInfinity;
  for (int i = 0; i < kLanes; ++i) result = largest[i] > result ? largest[i] : result;
  for (std::int64_t i = count / kLanes * kLanes; i < count; ++i) {
    result = values[i] > result ? values[i] : result;
  }
  return result;
}

float exponentials(float* values, std::int64_t count, float base) {
  Vec sum{};
  for_each(
      values, count, -kInfinity, [&](std::int64_t, Vec x) __attribute__((always_inline)) {
        const Vec e = exponential(x - base);
        sum += e;
        return e;
      });
  return sum_of(sum);
}

float dot(const float* weights, const float* values, std::int64_t count) {
  Vec sum{};
  const auto add = [&](Vec w, Vec x) __attribute__((always_inline)) {
    sum += w == 0.0F ? Vec{} : w * x;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) add(load(weights + i), load(values + i));
  add(load_some(weights + i, count - i, 0), load_some(values + i, count - i, 0));
  return sum_of(sum);
}

void centre(const float* weights, float mean, float* values, std::int64_t count) {
  for_each(
      values, count, 0, [&](std::int64_t i, Vec x) __attribute__((always_inline)) {
        const Vec w =
            i + kLanes <= count ? load(weights + i) : load_some(weights + i, count - i, 0);
        return w == 0.0F ? Vec{} : w * (x - mean);
      });
}

void narrow(const float* values, std::int64_t count, std::uint16_t* narrowed) {
  const auto round = [](Vec x) __attribute__((always_inline)) {
    const Words bits = __builtin_bit_cast(Words, x);
    const Words rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const Words quiet = (bits >> 16) | 0x40U;
    const auto number = x == x;  // NOLINT(misc-redundant-expression): not so for NaN
    return __builtin_convertvector(number ? rounded : quiet, Halves);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Halves halves = round(load(values + i));
    __builtin_memcpy(narrowed + i, &halves, sizeof halves);
  }
  const Halves halves = round(load_some(values + i, count - i, 0));
  for (std::int64_t j = i; j < count; ++j) narrowed[j] = halves[j - i];
}

}  // namespace

extern const RowKernels kKernels;
const RowKernels kKernels = {
    .scale = scale, .exponentials = exponentials, .dot = dot, .centre = centre, .narrow = narrow};

}  // namespace strobe::reference::gemm::STROBE_ISA
