#pragma once
// One step of a matrix product on tensor cores for each arithmetic. A step covers 32 bytes of the
// inner dimension: 16 elements of 16 bits or 8 of 32. For the inner dimension of both operands
// contiguous in shared memory, all arithmetics read the same bytes into the same registers.

#include "device/arithmetic.cuh"
#include "device/element.cuh"
#include "device/ptx/mma.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

/// 16-bit operands: what lies in memory is what is multiplied.
template <class Format>
struct MultiplyHalf {
  using Element = Format;
  static constexpr int kStep = 16;
  static constexpr bool kLoadsOneByOne = false;

  struct Left {
    Word words[4];
  };
  struct Right {
    Word words[2];
  };
  struct HalfLeft {  ///< of a step that is half there, whose other half would be zeros
    Word words[2];
  };

  STROBE_DEVICE static Left left(const Word (&raw)[4]) { return {raw[0], raw[1], raw[2], raw[3]}; }
  STROBE_DEVICE static Right right(Word first, Word second) { return {first, second}; }

  /// Sums as the left operand of the next product: two column tiles make a step.
  STROBE_DEVICE static Left left_from_sums(const float (*tiles)[4]) {
    return {Format::pack(tiles[0][0], tiles[0][1]), Format::pack(tiles[0][2], tiles[0][3]),
            Format::pack(tiles[1][0], tiles[1][1]), Format::pack(tiles[1][2], tiles[1][3])};
  }

  /// Where a lane reads a right operand that lies in memory as [inner][columns].
  STROBE_DEVICE static Word lane_offset_of_rows(int lane, int pitch) {
    return static_cast<Word>(lane % 16 * pitch + lane / 16 * 16);
  }

  /// Likewise the left operands that go with it: one that lies as [rows][inner], and one that lies
  /// as [inner][rows].
  STROBE_DEVICE static Word lane_offset_of_left(int lane, int pitch) {
    return static_cast<Word>(lane % 16 * pitch + lane / 16 * 16);
  }
  STROBE_DEVICE static Word lane_offset_of_left_rows(int lane, int pitch) {
    return static_cast<Word>((lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16);
  }

  STROBE_DEVICE static Left load_left(Word address, int) {
    Word raw[4];
    ptx::load_matrices(raw, address);
    return left(raw);
  }
  STROBE_DEVICE static Left load_left_rows(Word address, int) {
    Word raw[4];
    ptx::load_matrices_transposed(raw, address);
    return left(raw);
  }

  /// Two right operands, columns 0 to 7 and 8 to 15, of a step of rows.
  STROBE_DEVICE static void load_rows(Right (&to)[2], Word address, int) {
    Word raw[4];
    ptx::load_matrices_transposed(raw, address);
    to[0] = right(raw[0], raw[1]);
    to[1] = right(raw[2], raw[3]);
  }
  /// Columns 0 to 7 alone.
  STROBE_DEVICE static Right load_rows_once(Word address, int) {
    Word raw[2];
    ptx::load_two_matrices_transposed(raw, address);
    return right(raw[0], raw[1]);
  }
};

struct MultiplyBf16 : MultiplyHalf<Bf16> {
  STROBE_DEVICE static void add(float (&sum)[4], const Left& left, const Right& right) {
    ptx::mma_bf16(sum, left.words, right.words);
  }
  STROBE_DEVICE static void add_half(float (&sum)[4], const HalfLeft& left, Word right) {
    ptx::half_mma_bf16(sum, left.words, right);
  }
};

struct MultiplyFp16 : MultiplyHalf<Fp16> {
  STROBE_DEVICE static void add(float (&sum)[4], const Left& left, const Right& right) {
    ptx::mma_fp16(sum, left.words, right.words);
  }
  STROBE_DEVICE static void add_half(float (&sum)[4], const HalfLeft& left, Word right) {
    ptx::half_mma_fp16(sum, left.words, right);
  }
};

/// 32-bit operands, where `Term` says what becomes of a number before it is multiplied. Of the
/// sums, a lane has neighbouring columns 2m and 2m + 1 where a left operand wants columns m and
/// m + 4. The order of the inner dimension is free, so the right operand's rows are read in the
/// order that the sums have.
template <class Term>
struct MultiplySingle {
  using Element = Fp32;
  static constexpr int kStep = 8;
  /// Whether right operands must not be loaded ahead: one that is split takes many registers.
  static constexpr bool kLoadsOneByOne = sizeof(Term) > sizeof(Word);

  struct Left {
    Term terms[4];
  };
  struct Right {
    Term terms[2];
  };

  STROBE_DEVICE static Left left(const Word (&raw)[4]) {
    return {Term(__uint_as_float(raw[0])), Term(__uint_as_float(raw[1])),
            Term(__uint_as_float(raw[2])), Term(__uint_as_float(raw[3]))};
  }
  STROBE_DEVICE static Right right(Word first, Word second) {
    return {Term(__uint_as_float(first)), Term(__uint_as_float(second))};
  }

  STROBE_DEVICE static Left left_from_sums(const float (*tiles)[4]) {
    return {Term(tiles[0][0]), Term(tiles[0][2]), Term(tiles[0][1]), Term(tiles[0][3])};
  }

  STROBE_DEVICE static Word lane_offset_of_rows(int lane, int pitch) {
    return static_cast<Word>(lane % 4 * 2 * pitch + lane / 4 * 4);
  }
  STROBE_DEVICE static Word lane_offset_of_left(int lane, int pitch) {
    return static_cast<Word>(lane / 4 * pitch + lane % 4 * 8);
  }
  STROBE_DEVICE static Word lane_offset_of_left_rows(int lane, int pitch) {
    return lane_offset_of_rows(lane, pitch);
  }

  STROBE_DEVICE static Left load_left(Word address, int pitch) {
    const uint2 upper = ptx::load_words(address);
    const uint2 lower = ptx::load_words(address + 8 * pitch);
    return left({upper.x, lower.x, upper.y, lower.y});
  }
  STROBE_DEVICE static Left load_left_rows(Word address, int pitch) {
    return left({ptx::load_word(address), ptx::load_word(address + 32),
                 ptx::load_word(address + pitch), ptx::load_word(address + pitch + 32)});
  }

  STROBE_DEVICE static void load_rows(Right (&to)[2], Word address, int pitch) {
    to[0] = load_rows_once(address, pitch);
    to[1] = load_rows_once(address + 32, pitch);
  }
  STROBE_DEVICE static Right load_rows_once(Word address, int pitch) {
    return right(ptx::load_word(address), ptx::load_word(address + pitch));
  }
};

/// A number rounded to TF32.
struct RoundedTerm {
  RoundedTerm() = default;
  STROBE_DEVICE explicit RoundedTerm(float x) : word(ptx::round_to_tf32(x)) {}

  Word word;
};

struct MultiplyTf32 : MultiplySingle<RoundedTerm> {
  STROBE_DEVICE static void add(float (&sum)[4], const Left& left, const Right& right) {
    const Word a[4] = {left.terms[0].word, left.terms[1].word, left.terms[2].word,
                       left.terms[3].word};
    const Word b[2] = {right.terms[0].word, right.terms[1].word};
    ptx::mma_tf32(sum, a, b);
  }
};

/// A number as the sum of three TF32 ones, which is exact: 11 bits, 11, and the last two. Infinity
/// is left to the first alone.
struct SplitTerm {
  SplitTerm() = default;
  STROBE_DEVICE explicit SplitTerm(float x) {
    const float first = __uint_as_float(ptx::round_to_tf32(x));
    const float rest = x == first ? 0.0F : x - first;
    const float second = __uint_as_float(ptx::round_to_tf32(rest));
    high = __float_as_uint(first);
    middle = __float_as_uint(second);
    low = __float_as_uint(rest - second);
  }

  Word high;
  Word middle;
  Word low;
};

struct MultiplyFp32 : MultiplySingle<SplitTerm> {
  /// Products of two lower terms are below the rounding of fp32 and left out. Tensor cores cut off
  /// what does not fit where an fp32 addition rounds, so they only ever add up a step.
  STROBE_DEVICE static void add(float (&sum)[4], const Left& left, const Right& right) {
    Word high[4], middle[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = left.terms[i].high;
      middle[i] = left.terms[i].middle;
      low[i] = left.terms[i].low;
    }
    const Word right_high[2] = {right.terms[0].high, right.terms[1].high};
    const Word right_middle[2] = {right.terms[0].middle, right.terms[1].middle};
    const Word right_low[2] = {right.terms[0].low, right.terms[1].low};
    float step[4] = {0, 0, 0, 0};
    ptx::mma_tf32(step, low, right_high);
    ptx::mma_tf32(step, high, right_low);
    ptx::mma_tf32(step, middle, right_high);
    ptx::mma_tf32(step, high, right_middle);
    ptx::mma_tf32(step, high, right_high);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += step[i];
  }
};

template <Arithmetic arithmetic>
struct MultiplyOf;
template <>
struct MultiplyOf<Arithmetic::bf16> {
  using Type = MultiplyBf16;
};
template <>
struct MultiplyOf<Arithmetic::fp16> {
  using Type = MultiplyFp16;
};
template <>
struct MultiplyOf<Arithmetic::tf32> {
  using Type = MultiplyTf32;
};
template <>
struct MultiplyOf<Arithmetic::fp32> {
  using Type = MultiplyFp32;
};

}  // namespace strobe::cuda
