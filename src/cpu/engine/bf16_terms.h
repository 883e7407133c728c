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

/// Takes the upper half of `term`, float bits, off `x`.
STROBE_INLINE void take_off(__m512& x, __m512i term) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(term, high)));
}
STROBE_INLINE __m512i rounded_to_half(__m512i bits) {
  return _mm512_add_epi32(bits, _mm512_set1_epi32(0x8000));
}

/// Takes term `t` off `x`, a number that `terms` hold exactly: rounded to bf16, and at last what is
/// left. As float bits whose low half is anything.
template <int terms>
STROBE_INLINE __m512i next_term(int t, __m512& x) {
  const __m512i bits = _mm512_castps_si512(x);
  if (t + 1 == terms) return bits;
  const __m512i term = rounded_to_half(bits);
  take_off(x, term);
  return term;
}

/// The same, cut off rather than rounded: three terms are exact either way, and this is cheaper.
/// Where there are fewer the last is rounded.
template <int terms>
STROBE_INLINE __m512i cut_term(int t, __m512& x) {
  const __m512i bits = _mm512_castps_si512(x);
  if (t + 1 == terms) return terms == 3 ? bits : rounded_to_half(bits);
  take_off(x, bits);
  return bits;
}

/// Words of the upper halves (a[i], b[i]).
STROBE_INLINE __m512i paired(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(a, 16), b);
}
/// Words of the lower halves.
STROBE_INLINE __m512i paired_low(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, a, _mm512_slli_epi32(b, 16));
}

struct alignas(64) WordIndex {
  std::uint16_t at[32];
};

/// Elements `first`, `first` + 1, … of two rows in turn.
constexpr WordIndex in_turns(int first) {
  WordIndex index{};
  for (int i = 0; i < 32; ++i)
    index.at[i] = static_cast<std::uint16_t>(first + i / 2 + (i % 2 == 0 ? 0 : 32));
  return index;
}
constexpr WordIndex kInTurns[2] = {in_turns(0), in_turns(16)};

/// Whether all bf16 that were seen are finite.
class FiniteCheck {
 public:
  STROBE_INLINE void see(__m512i terms) {
    const __m512i size = _mm512_set1_epi16(0x7FFF);
    largest_ = _mm512_max_epu16(largest_, _mm512_and_si512(terms, size));
  }
  bool all() const { return _mm512_cmpge_epu16_mask(largest_, _mm512_set1_epi16(0x7F80)) == 0; }

 private:
  __m512i largest_ = _mm512_setzero_si512();
};

/// As many low bits as there are elements, of 32 that a word of 64 bytes has room for.
STROBE_INLINE std::uint32_t bits_below(std::int64_t count) {
  return count >= 32 ? 0xFFFFFFFFU : count <= 0 ? 0U : (1U << count) - 1U;
}

/// The first `count` of 16 elements, widened, then zeros.
template <int terms>
STROBE_INLINE __m512 load_floats(const void* source, std::int64_t count) {
  const auto mask = static_cast<__mmask16>(bits_below(count));
  if (terms == 3) return _mm512_maskz_loadu_ps(mask, source);
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, source));
}

/// 32 elements of a row, each term as 16 words of two bf16. Words hold neighbours where there is
/// one term, as elements lie in memory, else elements 16 apart, which takes fewer instructions.
template <int terms>
struct RowPart {
  __m512i term[terms];

  static STROBE_INLINE RowPart nothing() {
    RowPart part;
    for (auto& term : part.term) term = _mm512_setzero_si512();
    return part;
  }

  /// The first `count` elements at `source`, then zeros.
  static STROBE_INLINE RowPart load(const void* source, std::int64_t count, FiniteCheck& finite) {
    if constexpr (terms == 1) {
      const RowPart part{{_mm512_maskz_loadu_epi16(bits_below(count), source)}};
      finite.see(part.term[0]);
      return part;
    } else {
      constexpr std::int64_t kBytes = terms == 3 ? 4 : 2;
      return pairs(load_floats<terms>(source, count),
                   load_floats<terms>(static_cast<const char*>(source) + 16 * kBytes, count - 16),
                   finite);
    }
  }

  /// Words of (a[i], b[i]).
  static STROBE_INLINE RowPart pairs(__m512 a, __m512 b, FiniteCheck& finite) {
    RowPart part;
#pragma GCC unroll 3
    for (int t = 0; t < terms; ++t) {
      const __m512i first = next_term<terms>(t, a);
      part.term[t] = paired(first, next_term<terms>(t, b));
    }
    // Of what is not finite the last is NaN; rounding may have turned the others to zeros.
    finite.see(part.term[terms - 1]);
    return part;
  }

  /// To a row of every term's tile, `next` apart.
  STROBE_INLINE void store(std::uint16_t* target, std::int64_t next) const {
#pragma GCC unroll 3
    for (int t = 0; t < terms; ++t) _mm512_store_si512(target + t * next, term[t]);
  }

  /// Words of this row's and the other's element in each of the first 16 columns.
  STROBE_INLINE __m512i first_columns(int t, const RowPart& other) const {
    if (terms > 1) return paired_low(term[t], other.term[t]);
    return _mm512_permutex2var_epi16(term[t], _mm512_load_si512(&kInTurns[0]), other.term[t]);
  }
  /// And of the last 16.
  STROBE_INLINE __m512i last_columns(int t, const RowPart& other) const {
    if (terms > 1) return paired(term[t], other.term[t]);
    return _mm512_permutex2var_epi16(term[t], _mm512_load_si512(&kInTurns[1]), other.term[t]);
  }
};

/// 16 words of a row: floats, or pairs of neighbours where elements are bf16. Of `count` elements,
/// then zeros.
template <int terms>
STROBE_INLINE Vec load_words(const void* source, std::int64_t count) {
  if constexpr (terms == 1)
    return {_mm512_castsi512_ps(_mm512_maskz_loadu_epi16(bits_below(count), source))};
  else
    return {load_floats<terms>(source, count)};
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
