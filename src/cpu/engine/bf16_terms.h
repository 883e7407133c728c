#pragma once
// Numbers as sums of bf16 terms, for matrix units that multiply bf16 alone. Eight bits of
// significand each: one term holds a bf16, two an fp16, three an fp32, all exactly. A product of
// two such sums needs only the pairs whose orders add up to less than the number of terms; the rest
// is below the last place. Included after cpu/simd/avx512.h.

#include "cpu/generic/pack.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr DType dtype_of_terms(int terms) {
  return terms == 1 ? DType::bf16 : terms == 2 ? DType::fp16 : DType::fp32;
}

/// Takes the next term off `x`: the value rounded to bf16, as float bits with the low half zero.
STROBE_INLINE __m512i next_term(__m512& x) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  const __m512i term = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), high);
  x = _mm512_sub_ps(x, _mm512_castsi512_ps(term));
  return term;
}

struct alignas(64) WordIndex {
  std::uint16_t at[32];
};

/// The upper halves of the words of two vectors, one after the other.
constexpr WordIndex upper_halves() {
  WordIndex index{};
  for (int i = 0; i < 32; ++i) index.at[i] = static_cast<std::uint16_t>(2 * i + 1);
  return index;
}
/// Elements `first`, `first` + 1, … of two rows in turn.
constexpr WordIndex in_turns(int first) {
  WordIndex index{};
  for (int i = 0; i < 32; ++i)
    index.at[i] = static_cast<std::uint16_t>(first + i / 2 + (i % 2 == 0 ? 0 : 32));
  return index;
}
constexpr WordIndex kUpperHalves = upper_halves();
constexpr WordIndex kInTurns[2] = {in_turns(0), in_turns(16)};

/// Terms of a and b as 32 bf16.
STROBE_INLINE __m512i narrowed(__m512i a, __m512i b) {
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(&kUpperHalves), b);
}
/// 16 terms as 16 bf16.
STROBE_INLINE __m256i narrowed(__m512i term) {
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_load_si512(&kUpperHalves), term));
}

/// Terms of a and b as pairs (a[i], b[i]) of bf16.
STROBE_INLINE __m512i paired(__m512i a, __m512i b) {
  return _mm512_or_si512(_mm512_srli_epi32(a, 16), b);
}

/// 32 elements of a row, each term as 32 bf16.
template <int terms>
struct RowPart {
  __m512i term[terms];

  /// The first `count` elements at `source`, then zeros. Adds to `finite` whether all are.
  STROBE_INLINE void load(const void* source, std::int64_t count, bool& finite) {
    const auto mask = static_cast<__mmask32>(count >= 32 ? 0xFFFFFFFFU : (1U << count) - 1U);
    if constexpr (terms == 1) {
      term[0] = _mm512_maskz_loadu_epi16(mask, source);
    } else {
      const auto low = static_cast<__mmask16>(mask);
      const auto high = static_cast<__mmask16>(mask >> 16);
      __m512 a;
      __m512 b;
      if constexpr (terms == 2) {
        const __m512i both = _mm512_maskz_loadu_epi16(mask, source);
        a = _mm512_cvtph_ps(_mm512_castsi512_si256(both));
        b = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1));
      } else {
        a = _mm512_maskz_loadu_ps(low, source);
        b = _mm512_maskz_loadu_ps(high, static_cast<const float*>(source) + 16);
      }
#pragma GCC unroll 3
      for (int t = 0; t < terms; ++t) {
        const __m512i first = next_term(a);
        term[t] = narrowed(first, next_term(b));
      }
    }
    const __m512i exponent = _mm512_set1_epi16(0x7F80);
    finite = finite && _mm512_cmpeq_epi16_mask(_mm512_and_si512(term[0], exponent), exponent) == 0;
  }
};

/// 16 x 16 words of 32 bits.
struct Words {
  __m512i row[16];

  STROBE_INLINE void transpose() {
    __m512i t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {  // pairs of words
      t[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
      t[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {  // pairs of pairs
      row[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      row[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      row[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      row[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {  // quarters of rows
      t[i] = _mm512_shuffle_i32x4(row[i], row[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_i32x4(row[i], row[i + 4], 0xDD);
      t[i + 8] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0xDD);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      row[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
      row[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
      row[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
      row[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
    }
  }
  STROBE_INLINE void store(std::uint16_t* target) const {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(target + i * 32, row[i]);
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
