#pragma once

#include <cstdint>
#include <cstring>

#include "core/convert.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Four floats in plain C++: runs anywhere, and shows what the other types must do.
struct Vec {
  static constexpr int kWidth = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kTileVecs = 2;

  float v[kWidth];
};
struct Mask {
  bool m[Vec::kWidth];
};

template <class F>
inline Vec each_lane(F&& lane) {
  Vec result;
  for (int i = 0; i < Vec::kWidth; ++i) result.v[i] = lane(i);
  return result;
}

inline std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline Vec load(const float* p) {
  return each_lane([&](int i) { return p[i]; });
}
inline void store(float* p, Vec a) {
  for (int i = 0; i < Vec::kWidth; ++i) p[i] = a.v[i];
}
inline Vec splat(float x) {
  return each_lane([&](int) { return x; });
}
inline Vec iota() {
  return each_lane([](int i) { return static_cast<float>(i); });
}

inline Vec operator+(Vec a, Vec b) {
  return each_lane([&](int i) { return a.v[i] + b.v[i]; });
}
inline Vec operator-(Vec a, Vec b) {
  return each_lane([&](int i) { return a.v[i] - b.v[i]; });
}
inline Vec operator*(Vec a, Vec b) {
  return each_lane([&](int i) { return a.v[i] * b.v[i]; });
}
inline Vec operator/(Vec a, Vec b) {
  return each_lane([&](int i) { return a.v[i] / b.v[i]; });
}
/// Rounds twice: a fused one costs a library call where the hardware has none.
inline Vec fma(Vec a, Vec b, Vec c) {
  return each_lane([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline Vec max(Vec a, Vec b) {
  return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Vec abs(Vec a) {
  return each_lane([&](int i) { return float_of(bits_of(a.v[i]) & 0x7FFFFFFFU); });
}

inline Mask less(Vec a, Vec b) {
  Mask result;
  for (int i = 0; i < Vec::kWidth; ++i) result.m[i] = a.v[i] < b.v[i];
  return result;
}
inline Mask equal(Vec a, Vec b) {
  Mask result;
  for (int i = 0; i < Vec::kWidth; ++i) result.m[i] = a.v[i] == b.v[i];
  return result;
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return each_lane([&](int i) { return m.m[i] ? yes.v[i] : no.v[i]; });
}

/// The largest n with 2^n <= x, for positive normal x.
inline Vec power_below(Vec x) {
  return each_lane([&](int i) { return static_cast<float>(bits_of(x.v[i]) >> 23) - 127.0F; });
}
/// y * 2^n for the integer n, -126 or more, where `magic` has n + 127 in its low bits; 0 where
/// x < least. A product, so that a NaN stays one.
inline Vec scale_by_power(Vec y, Vec magic, Vec x, Vec least) {
  return each_lane([&](int i) {
    return x.v[i] < least.v[i] ? 0.0F : y.v[i] * float_of(bits_of(magic.v[i]) << 23);
  });
}

// Compiled for the baseline, so sharing inline functions with the core is safe here.
inline Vec load_fp16(const std::uint16_t* p) {
  return each_lane([&](int i) { return fp16_to_float(p[i]); });
}
inline Vec load_bf16(const std::uint16_t* p) {
  return each_lane([&](int i) { return bf16_to_float(p[i]); });
}
inline void store_fp16(std::uint16_t* p, Vec a) {
  for (int i = 0; i < Vec::kWidth; ++i) p[i] = float_to_fp16(a.v[i]);
}
inline void store_bf16(std::uint16_t* p, Vec a) {
  for (int i = 0; i < Vec::kWidth; ++i) p[i] = float_to_bf16(a.v[i]);
}

/// Transposes as many vectors as one has lanes.
inline void turn(Vec (&rows)[Vec::kWidth]) {
  for (int r = 0; r < Vec::kWidth; ++r) {
    for (int c = 0; c < r; ++c) {
      const float x = rows[r].v[c];
      rows[r].v[c] = rows[c].v[r];
      rows[c].v[r] = x;
    }
  }
}

constexpr int kTransposeBlock = 4;

/// target[c][r] = source[r][c] for a 4 x 4 block.
inline void transpose_block(const float* source, std::int64_t source_stride, float* target,
                            std::int64_t target_stride) {
  for (int r = 0; r < kTransposeBlock; ++r) {
    for (int c = 0; c < kTransposeBlock; ++c) {
      target[c * target_stride + r] = source[r * source_stride + c];
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
