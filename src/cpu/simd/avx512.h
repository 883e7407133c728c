#pragma once

#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Sixteen floats.
struct Vec {
  static constexpr int kWidth = 16;
  static constexpr int kTileRows = 8;  // 8 x 3 accumulators of the 32 registers
  static constexpr int kTileVecs = 3;

  __m512 v;
};
using Mask = __mmask16;

inline Vec load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, Vec a) {
  _mm512_storeu_ps(p, a.v);
}
inline Vec splat(float x) {
  return {_mm512_set1_ps(x)};
}
inline Vec iota() {
  return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Vec abs(Vec a) {
  return {_mm512_abs_ps(a.v)};
}

inline Mask less(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ);
}
inline Mask equal(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ);
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {_mm512_mask_blend_ps(m, no.v, yes.v)};
}

/// The largest n with 2^n <= x, for positive normal x.
inline Vec power_below(Vec x) {
  return {_mm512_getexp_ps(x.v)};
}
/// y * 2^n for the integer n, -126 or more, where `magic` has n + 127 in its low bits; 0 where
/// x < least. A product, so that a NaN stays one.
inline Vec scale_by_power(Vec y, Vec magic, Vec x, Vec least) {
  const __m512 power = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(magic.v), 23));
  return {_mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x.v, least.v, _CMP_NLT_UQ), y.v, power)};
}

inline Vec load_fp16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Vec load_bf16(const std::uint16_t* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
inline __m256i narrow_fp16(Vec a) {
  return _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline void store_fp16(std::uint16_t* p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_fp16(a));
}
inline __m512i narrow_fp16(Vec a, Vec b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(narrow_fp16(a)), narrow_fp16(b), 1);
}
#ifdef __AVX512BF16__
// Takes subnormals for zeros, as the products of the units that have it do.
inline __m256i narrow_bf16(Vec a) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
}
inline __m512i narrow_bf16(Vec a, Vec b) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v));
}
#else
inline __m256i narrow_bf16(Vec a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __m512i result = _mm512_mask_blend_epi32(nan, rounded, quiet);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}
inline __m512i narrow_bf16(Vec a, Vec b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(narrow_bf16(a)), narrow_bf16(b), 1);
}
#endif
inline void store_bf16(std::uint16_t* p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(a));
}

/// Of 32 halves, the words of one in the first 16 and its like in the last.
inline Vec halves_in_turns(__m512i halves) {
  const __m512i turns = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(turns, halves))};
}
/// Words of (a[i], b[i]) in 16 bits each.
inline Vec pair_fp16(Vec a, Vec b) {
  return halves_in_turns(narrow_fp16(a, b));
}
inline Vec pair_bf16(Vec a, Vec b) {
  return halves_in_turns(narrow_bf16(a, b));
}

/// Transposes as many vectors as one has lanes.
inline __attribute__((always_inline)) void turn(Vec (&rows)[Vec::kWidth]) {
  __m512 a[16];
  __m512 b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {  // pairs of lanes
    a[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    a[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {  // pairs of pairs
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {  // quarters of vectors
    a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xDD);
    a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    rows[i].v = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
    rows[i + 8].v = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xDD);
    rows[i + 4].v = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
    rows[i + 12].v = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xDD);
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/simd/transpose_x86.h"
