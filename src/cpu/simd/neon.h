#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Four floats.
struct Vec {
  static constexpr int kWidth = 4;
  static constexpr int kTileRows = 8;  // 8 x 3 accumulators of the 32 registers
  static constexpr int kTileVecs = 3;

  float32x4_t v;
};
using Mask = uint32x4_t;

inline Vec load(const float* p) {
  return {vld1q_f32(p)};
}
inline void store(float* p, Vec a) {
  vst1q_f32(p, a.v);
}
inline Vec splat(float x) {
  return {vdupq_n_f32(x)};
}
inline Vec iota() {
  const float lanes[4] = {0, 1, 2, 3};
  return load(lanes);
}

inline Vec operator+(Vec a, Vec b) {
  return {vaddq_f32(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {vsubq_f32(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {vmulq_f32(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {vdivq_f32(a.v, b.v)};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
inline Vec max(Vec a, Vec b) {
  return {vmaxq_f32(a.v, b.v)};
}
inline Vec abs(Vec a) {
  return {vabsq_f32(a.v)};
}

inline Mask less(Vec a, Vec b) {
  return vcltq_f32(a.v, b.v);
}
inline Mask equal(Vec a, Vec b) {
  return vceqq_f32(a.v, b.v);
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {vbslq_f32(m, yes.v, no.v)};
}

/// The largest n with 2^n <= x, for positive normal x.
inline Vec power_below(Vec x) {
  const uint32x4_t biased = vshrq_n_u32(vreinterpretq_u32_f32(x.v), 23);
  return {vsubq_f32(vcvtq_f32_u32(biased), vdupq_n_f32(127.0F))};
}
/// y * 2^n for the integer n, -126 or more, where `magic` has n + 127 in its low bits; 0 where
/// x < least. A product, so that a NaN stays one.
inline Vec scale_by_power(Vec y, Vec magic, Vec x, Vec least) {
  const float32x4_t power = vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(magic.v), 23));
  const uint32x4_t scaled = vreinterpretq_u32_f32(vmulq_f32(y.v, power));
  return {vreinterpretq_f32_u32(vbicq_u32(scaled, less(x, least)))};
}

inline Vec load_fp16(const std::uint16_t* p) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))};
}
inline Vec load_bf16(const std::uint16_t* p) {
  return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))};
}
inline void store_fp16(std::uint16_t* p, Vec a) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a.v)));
}
inline void store_bf16(std::uint16_t* p, Vec a) {
#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
  vst1_u16(p, vreinterpret_u16_bf16(vcvt_bf16_f32(a.v)));
#else
  const uint32x4_t bits = vreinterpretq_u32_f32(a.v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  const uint32x4_t number = vceqq_f32(a.v, a.v);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  vst1_u16(p, vshrn_n_u32(vbslq_u32(number, rounded, quiet), 16));
#endif
}

/// Transposes as many vectors as one has lanes.
inline void turn(Vec (&rows)[Vec::kWidth]) {
  const float32x4x2_t low = vtrnq_f32(rows[0].v, rows[1].v);
  const float32x4x2_t high = vtrnq_f32(rows[2].v, rows[3].v);
  rows[0].v = vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0]));
  rows[1].v = vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1]));
  rows[2].v = vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0]));
  rows[3].v = vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1]));
}

constexpr int kTransposeBlock = 4;

/// target[c][r] = source[r][c] for a 4 x 4 block.
inline void transpose_block(const float* source, std::int64_t source_stride, float* target,
                            std::int64_t target_stride) {
  Vec rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = load(source + i * source_stride);
  turn(rows);
  for (int i = 0; i < 4; ++i) store(target + i * target_stride, rows[i]);
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
