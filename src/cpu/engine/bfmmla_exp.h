#pragma once
// The exponentials of a block of scores as BfmmlaEngine multiplies them, in assembly for the
// reasons given in neon_exp.h.
//
// 2^t is taken from the bits of an integer: of t + 127 in units of 2^-23 the high bits are the
// exponent of the result, and the low bits, as the mantissa of a number m from 1 to 2, its
// fraction. A polynomial makes 2^(m - 1) of m, again from 1 to 2, whose mantissa joins the
// exponent. What is below 2^-127 becomes the integer 0, and that 0.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
// Four rows at a time of one vector of queries, which go through the same instruction one after the
// other; a name stands for their registers. v0 holds factors, v1 ones, v2 the bits of an exponent,
// v3 what rounds to bf16, v4 and v5 the sums of even and odd rows.
#define STROBE_EXP_P 8, 9, 10, 11
#define STROBE_EXP_M 12, 13, 14, 15
#define STROBE_EXP_Q 16, 17, 18, 19
#define STROBE_EXP_T 20, 21, 22, 23
#define STROBE_EXP_EVEN 24, 25, 26, 27
#define STROBE_EXP_ODD 28, 29, 30, 31

#define STROBE_FOUR(...) STROBE_FOUR_OF(__VA_ARGS__)
#define STROBE_FOUR_OF(op, type, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3)  \
  #op " v" #c0 "." #type ", v" #a0 "." #type ", v" #b0 "." #type "\n"             \
  #op " v" #c1 "." #type ", v" #a1 "." #type ", v" #b1 "." #type "\n"             \
  #op " v" #c2 "." #type ", v" #a2 "." #type ", v" #b2 "." #type "\n"             \
  #op " v" #c3 "." #type ", v" #a3 "." #type ", v" #b3 "." #type "\n"
#define STROBE_FOUR_BY(...) STROBE_FOUR_BY_OF(__VA_ARGS__)
#define STROBE_FOUR_BY_OF(op, type, c0, c1, c2, c3, a0, a1, a2, a3, by)  \
  #op " v" #c0 "." #type ", v" #a0 "." #type by "\n"                     \
  #op " v" #c1 "." #type ", v" #a1 "." #type by "\n"                     \
  #op " v" #c2 "." #type ", v" #a2 "." #type by "\n"                     \
  #op " v" #c3 "." #type ", v" #a3 "." #type by "\n"
#define STROBE_FOUR_LOAD(...) STROBE_FOUR_LOAD_OF(__VA_ARGS__)
#define STROBE_FOUR_LOAD_OF(from, offset, step, c0, c1, c2, c3)  \
  "ldr q" #c0 ", [%[" #from "], #" #offset "]\n"                 \
  "ldr q" #c1 ", [%[" #from "], #" #offset " + " #step "]\n"     \
  "ldr q" #c2 ", [%[" #from "], #" #offset " + 2 * " #step "]\n" \
  "ldr q" #c3 ", [%[" #from "], #" #offset " + 3 * " #step "]\n"
#define STROBE_FOUR_ADDENDS(...) STROBE_FOUR_LOAD(addends, __VA_ARGS__)

// A chain of a dozen instructions waits for itself, and the core does not look far enough ahead to
// find the next one. So four groups of rows are in work, each in another of these stages.

// The integers of the rows at x, which goes on to the next, or stays at the last.
#define STROBE_EXP_INTEGERS(integer)                             \
  STROBE_FOUR_LOAD(x, 0, 48, STROBE_EXP_T)                       \
  STROBE_FOUR_ADDENDS(0, 0, integer)                             \
  STROBE_FOUR_BY(fmla, 4s, integer, STROBE_EXP_T, ", v0.s[0]")   \
  STROBE_FOUR_BY(fcvtzu, 4s, integer, integer, "")               \
  "add %[x], %[x], #192\n"                                       \
  "cmp %[x], %[last]\n"                                          \
  "csel %[x], %[x], %[last], lo\n"
// m, and the polynomial without its last two terms.
#define STROBE_EXP_BEGIN(integer)                                        \
  STROBE_FOUR_ADDENDS(16, 0, STROBE_EXP_M)                               \
  STROBE_FOUR_BY(bsl, 16b, STROBE_EXP_M, integer, ", v1.16b")            \
  STROBE_FOUR_ADDENDS(32, 0, STROBE_EXP_T)                               \
  STROBE_FOUR_BY(fmla, 4s, STROBE_EXP_T, STROBE_EXP_M, ", v0.s[1]")      \
  STROBE_FOUR_ADDENDS(48, 0, STROBE_EXP_Q)                               \
  STROBE_FOUR(fmla, 4s, STROBE_EXP_Q, STROBE_EXP_M, STROBE_EXP_T)
// These, and the exponent.
#define STROBE_EXP_END(integer)                                          \
  STROBE_FOUR_ADDENDS(64, 0, STROBE_EXP_T)                               \
  STROBE_FOUR(fmla, 4s, STROBE_EXP_T, STROBE_EXP_M, STROBE_EXP_Q)        \
  STROBE_FOUR_ADDENDS(80, 0, STROBE_EXP_P)                               \
  STROBE_FOUR(fmla, 4s, STROBE_EXP_P, STROBE_EXP_M, STROBE_EXP_T)        \
  STROBE_FOUR_BY(bit, 16b, STROBE_EXP_P, integer, ", v2.16b")
// Adds four rows to the sums, rounds them by adding half of the last place and cutting off, which
// takes any of the units where BFCVTN takes one, and stores them with the rows together.
#define STROBE_EXP_STORE(offset)              \
  "fadd v4.4s, v4.4s, v8.4s\n"                \
  "fadd v5.4s, v5.4s, v9.4s\n"                \
  "fadd v4.4s, v4.4s, v10.4s\n"               \
  "fadd v5.4s, v5.4s, v11.4s\n"               \
  "addhn v20.4h, v8.4s, v3.4s\n"              \
  "addhn v21.4h, v9.4s, v3.4s\n"              \
  "addhn v22.4h, v10.4s, v3.4s\n"             \
  "addhn v23.4h, v11.4s, v3.4s\n"             \
  "zip1 v20.8h, v20.8h, v22.8h\n"             \
  "zip1 v21.8h, v21.8h, v23.8h\n"             \
  "zip1 v22.8h, v20.8h, v21.8h\n"             \
  "zip2 v23.8h, v20.8h, v21.8h\n"             \
  "stp q22, q23, [%[p], #" #offset "]\n"

#define STROBE_EXP_TO_BF16                                                              \
  __asm__ volatile(                                                                     \
    "ldp q0, q1, [%[factors]]\n"                                                        \
    "ldp q2, q3, [%[factors], #32]\n"                                                   \
    "movi v4.2d, #0\n"                                                                  \
    "movi v5.2d, #0\n"                                                                  \
    STROBE_EXP_INTEGERS(STROBE_EXP_EVEN)                                                \
    STROBE_EXP_BEGIN(STROBE_EXP_EVEN)                                                   \
    STROBE_EXP_INTEGERS(STROBE_EXP_ODD)                                                 \
    STROBE_EXP_END(STROBE_EXP_EVEN)                                                     \
    STROBE_EXP_BEGIN(STROBE_EXP_ODD)                                                    \
    STROBE_EXP_INTEGERS(STROBE_EXP_EVEN)                                                \
    "1:\n"                                                                              \
    STROBE_EXP_STORE(0)                                                                 \
    STROBE_EXP_END(STROBE_EXP_ODD)                                                      \
    STROBE_EXP_BEGIN(STROBE_EXP_EVEN)                                                   \
    STROBE_EXP_INTEGERS(STROBE_EXP_ODD)                                                 \
    STROBE_EXP_STORE(96)                                                                \
    STROBE_EXP_END(STROBE_EXP_EVEN)                                                     \
    STROBE_EXP_BEGIN(STROBE_EXP_ODD)                                                    \
    STROBE_EXP_INTEGERS(STROBE_EXP_EVEN)                                                \
    "add %[p], %[p], #192\n"                                                            \
    "subs %[rows], %[rows], #8\n"                                                       \
    "b.ne 1b\n"                                                                         \
    "ldr q6, [%[sum]]\n"                                                                \
    "fadd v4.4s, v4.4s, v5.4s\n"                                                        \
    "fadd v4.4s, v4.4s, v6.4s\n"                                                        \
    "str q4, [%[sum]]\n"                                                                \
    : [rows] "+&r"(rows), [x] "+&r"(x), [p] "+&r"(p)                                    \
    : [last] "r"(last), [sum] "r"(sum), [addends] "r"(&addends), [factors] "r"(&factors) \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

#define STROBE_EACH(x) x, x, x, x
/// What v0 to v3 hold.
struct ShortExpFactors {
  float scale;
  float highest[3] = {1.3555751e-2F};
  float ones[4] = {STROBE_EACH(1.0F)};
  std::uint32_t exponent[4] = {STROBE_EACH(0x7F800000)};
  std::uint32_t half[4] = {STROBE_EACH(0x8000)};
};

/// What instructions that overwrite an operand begin with. The polynomial is exact at 1 and stays
/// below 2, which was tried for every m, and is off by at most 3.5e-6.
struct ShortExpAddends {
  float shift[4];
  std::uint32_t mantissa[4] = {STROBE_EACH(0x007FFFFF)};
  float coefficients[4][4] = {{STROBE_EACH(-2.1906390e-3F)},
                              {STROBE_EACH(1.6661717e-1F)},
                              {STROBE_EACH(3.1214669e-1F)},
                              {STROBE_EACH(5.0987101e-1F)}};
};
#undef STROBE_EACH

/// Up to here a scale in units of an integer's last place is finite. An infinite one would make no
/// number, and so 0, of the largest score of a row, where that is 0.
constexpr float kExpLargestScale = 0x1p104F;

/// p[rows / 4][12 queries][4] = e^(scale * x[rows][12] - base[12]) within 7e-6, and 0 below 2^-127
/// or of what is no number; adds the sum of its rows, before they are rounded, to sum[12]. A
/// multiple of eight rows. scale <= kExpLargestScale.
inline void exp_rows_to_bf16(std::int64_t all_rows, const float* scores, float scale,
                             const float* base, float* sums, std::uint16_t* block) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kUnit = 0x1p23F;
  const ShortExpFactors factors{.scale = scale * kLog2E * kUnit};
  ShortExpAddends addends;
  for (int v = 0; v < 3; ++v) {
    for (int i = 0; i < 4; ++i) addends.shift[i] = (127.0F - kLog2E * base[4 * v + i]) * kUnit;
    std::int64_t rows = all_rows;
    const float* x = scores + 4 * v;
    const float* const last = x + (rows - 4) * 12;
    float* const sum = sums + 4 * v;
    std::uint16_t* p = block + 16 * v;
    STROBE_EXP_TO_BF16;
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#undef STROBE_EXP_P
#undef STROBE_EXP_M
#undef STROBE_EXP_Q
#undef STROBE_EXP_T
#undef STROBE_EXP_EVEN
#undef STROBE_EXP_ODD
#undef STROBE_FOUR
#undef STROBE_FOUR_OF
#undef STROBE_FOUR_BY
#undef STROBE_FOUR_BY_OF
#undef STROBE_FOUR_LOAD
#undef STROBE_FOUR_LOAD_OF
#undef STROBE_FOUR_ADDENDS
#undef STROBE_EXP_INTEGERS
#undef STROBE_EXP_BEGIN
#undef STROBE_EXP_END
#undef STROBE_EXP_STORE
#undef STROBE_EXP_TO_BF16
