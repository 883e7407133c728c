#pragma once

#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Eight floats, with FMA and F16C.
struct Vec {
  static constexpr int kWidth = 8;
  static constexpr int kTileRows = 4;  // 4 x 3 accumulators, three operands and a broadcast: 16
  static constexpr int kTileVecs = 3;

  __m256 v;
};
struct Mask {
  __m256 m;
};

inline Vec load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
inline void store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.v);
}
inline Vec splat(float x) {
  return {_mm256_set1_ps(x)};
}
inline Vec iota() {
  return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)};
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.v, b.v)};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.v, b.v)};
}
inline Vec abs(Vec a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), a.v)};
}

inline Mask less(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
inline Mask equal(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)};
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, m.m)};
}

/// The largest n with 2^n <= x, for positive normal x.
inline Vec power_below(Vec x) {
  const __m256i biased = _mm256_srli_epi32(_mm256_castps_si256(x.v), 23);
  return {_mm256_sub_ps(_mm256_cvtepi32_ps(biased), _mm256_set1_ps(127.0F))};
}
/// y * 2^n for the integer n, -126 or more, where `magic` has n + 127 in its low bits; 0 where
/// x < least. A product, so that a NaN stays one.
inline Vec scale_by_power(Vec y, Vec magic, Vec x, Vec least) {
  const __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(magic.v), 23));
  return {_mm256_and_ps(_mm256_cmp_ps(x.v, least.v, _CMP_NLT_UQ), _mm256_mul_ps(y.v, power))};
}

inline Vec load_fp16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Vec load_bf16(const std::uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
}
inline void store_fp16(std::uint16_t* p, Vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline void store_bf16(std::uint16_t* p, Vec a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256 nan = _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i result =
      _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan)), 16);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1)));
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/simd/transpose_x86.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Transposes as many vectors as one has lanes.
inline void turn(Vec (&rows)[Vec::kWidth]) {
  __m256 row[8];
  for (int i = 0; i < 8; ++i) row[i] = rows[i].v;
  turn_eight(row);
  for (int i = 0; i < 8; ++i) rows[i].v = row[i];
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
