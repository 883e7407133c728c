#pragma once
// The exponentials of a block of scores on NEON, in assembly for two reasons. A chain of twenty
// instructions waits for itself, so one row is reduced while the polynomial of the row before is
// summed, and no compiler found the registers for that. And FMLA overwrites what it adds to: a
// constant would first be copied by the units that multiply, which are the ones in short supply, so
// it is loaded anew each time.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
// The three vectors of a row go through the same instruction one after the other; a name stands for
// their registers. v0 holds what they are multiplied by while they are reduced, v1 coefficients.
#define STROBE_EXP_MAGIC 2, 2, 2
#define STROBE_EXP_LEAST 3, 3, 3
#define STROBE_EXP_SUM 4, 5, 6
#define STROBE_EXP_EVEN_REST 8, 9, 10
#define STROBE_EXP_EVEN_POWER 11, 12, 13
#define STROBE_EXP_ODD_REST 14, 15, 16
#define STROBE_EXP_ODD_POWER 17, 18, 19
#define STROBE_EXP_N 20, 21, 22
#define STROBE_EXP_SQUARE 23, 24, 25
#define STROBE_EXP_HIGH 26, 27, 28
#define STROBE_EXP_LOW 29, 30, 31

#define STROBE_THREE(...) STROBE_THREE_OF(__VA_ARGS__)
#define STROBE_THREE_OF(op, type, c0, c1, c2, a0, a1, a2, b0, b1, b2)        \
  #op " v" #c0 "." #type ", v" #a0 "." #type ", v" #b0 "." #type "\n"        \
  #op " v" #c1 "." #type ", v" #a1 "." #type ", v" #b1 "." #type "\n"        \
  #op " v" #c2 "." #type ", v" #a2 "." #type ", v" #b2 "." #type "\n"
#define STROBE_THREE_BY(...) STROBE_THREE_BY_OF(__VA_ARGS__)
#define STROBE_THREE_BY_OF(op, c0, c1, c2, a0, a1, a2, b)  \
  #op " v" #c0 ".4s, v" #a0 ".4s, " b "\n"                 \
  #op " v" #c1 ".4s, v" #a1 ".4s, " b "\n"                 \
  #op " v" #c2 ".4s, v" #a2 ".4s, " b "\n"
#define STROBE_THREE_MOVE(...) STROBE_THREE_MOVE_OF(__VA_ARGS__)
#define STROBE_THREE_MOVE_OF(pair, one, at, offset, c0, c1, c2)      \
  #pair " q" #c0 ", q" #c1 ", [%[" #at "], #" #offset "]\n"          \
  #one " q" #c2 ", [%[" #at "], #" #offset " + 32]\n"
#define STROBE_THREE_LOAD(...) STROBE_THREE_MOVE(ldp, ldr, __VA_ARGS__)
#define STROBE_THREE_STORE(...) STROBE_THREE_MOVE(stp, str, __VA_ARGS__)

// exp_difference of generic/math.h, a row at `from` to (rest, power), and between these lines the row
// before, from (old, old_power) to probabilities: 2^n + 2^n (e^rest - 1), with 2^n from the low bits
// of the power. It ends in the registers of the square.
#define STROBE_EXP_ROW(from, from_offset, rest, power, old, old_power, to_offset)  \
  STROBE_THREE_LOAD(from, from_offset, rest)                                       \
  STROBE_THREE(fmul, 4s, STROBE_EXP_SQUARE, old, old)                              \
  STROBE_THREE_LOAD(constants, 48, STROBE_EXP_HIGH)                                \
  STROBE_THREE_BY(fmla, STROBE_EXP_HIGH, old, "v1.s[0]")                           \
  STROBE_THREE_BY(fmul, rest, rest, "v0.s[0]")                                     \
  STROBE_THREE_LOAD(constants, 96, STROBE_EXP_LOW)                                 \
  STROBE_THREE_BY(fmla, STROBE_EXP_LOW, old, "v1.s[1]")                            \
  STROBE_THREE_LOAD(base, 0, STROBE_EXP_N)                                         \
  STROBE_THREE(fsub, 4s, STROBE_EXP_N, rest, STROBE_EXP_N)                         \
  STROBE_THREE_BY(fmla, STROBE_EXP_HIGH, STROBE_EXP_SQUARE, "v1.s[2]")             \
  STROBE_THREE_LOAD(constants, 0, power)                                           \
  STROBE_THREE_BY(fmla, power, STROBE_EXP_N, "v0.s[1]")                            \
  STROBE_THREE(fmla, 4s, STROBE_EXP_LOW, STROBE_EXP_SQUARE, STROBE_EXP_HIGH)       \
  STROBE_THREE(fsub, 4s, STROBE_EXP_N, power, STROBE_EXP_MAGIC)                    \
  STROBE_THREE_LOAD(base, 0, STROBE_EXP_HIGH)                                      \
  STROBE_THREE(fmla, 4s, old, STROBE_EXP_SQUARE, STROBE_EXP_LOW)                   \
  STROBE_THREE_BY(fmla, STROBE_EXP_HIGH, STROBE_EXP_N, "v0.s[2]")                  \
  STROBE_THREE_BY(shl, STROBE_EXP_SQUARE, old_power, "#23")                        \
  STROBE_THREE(fcmgt, 4s, STROBE_EXP_LOW, STROBE_EXP_LEAST, old_power)             \
  STROBE_THREE(fmla, 4s, STROBE_EXP_SQUARE, STROBE_EXP_SQUARE, old)                \
  STROBE_THREE(fsub, 4s, rest, rest, STROBE_EXP_HIGH)                              \
  STROBE_THREE(bic, 16b, STROBE_EXP_SQUARE, STROBE_EXP_SQUARE, STROBE_EXP_LOW)     \
  STROBE_THREE_BY(fmla, rest, STROBE_EXP_N, "v0.s[3]")                             \
  STROBE_THREE(fadd, 4s, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_SQUARE)        \
  STROBE_THREE_STORE(p, to_offset, STROBE_EXP_SQUARE)

// Before the first row comes one whose power is below the least: all zeros, stored where the first
// will be. With the last pair of rows, the row ahead is the first of that pair again.
#define STROBE_EXP_ROWS                                                                       \
  __asm__ volatile(                                                                           \
    "ldp q0, q1, [%[factors]]\n"                                                              \
    "ldp q2, q3, [%[factors], #32]\n"                                                         \
    STROBE_NEON_ZERO4(4, 5, 6, 14)                                                            \
    STROBE_NEON_ZERO4(15, 16, 17, 18)                                                         \
    "movi v19.2d, #0\n"                                                                       \
    STROBE_EXP_ROW(x, 0, STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER,                         \
                   STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER, 0)                              \
    "1:\n"                                                                                    \
    "subs %[rows], %[rows], #2\n"                                                             \
    "add %[next], %[x], #96\n"                                                                \
    "csel %[next], %[next], %[x], ne\n"                                                       \
    STROBE_EXP_ROW(x, 48, STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER,                          \
                   STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER, 0)                            \
    STROBE_EXP_ROW(next, 0, STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER,                      \
                   STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER, 48)                             \
    "mov %[x], %[next]\n"                                                                     \
    "add %[p], %[p], #96\n"                                                                   \
    "b.ne 1b\n"                                                                               \
    STROBE_THREE_LOAD(sum, 0, STROBE_EXP_N)                                                   \
    STROBE_THREE(fadd, 4s, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_N)                      \
    STROBE_THREE_STORE(sum, 0, STROBE_EXP_SUM)                                                \
    : [rows] "+&r"(rows), [x] "+&r"(x), [p] "+&r"(p), [next] "=&r"(next)                      \
    : [base] "r"(base), [sum] "r"(sum), [constants] "r"(kExpAddends), [factors] "r"(&factors) \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// 1.5 * 2^23, as in exp_difference, and the bias of an exponent: what is rounded by adding it has
/// in its low bits those of a power of two.
constexpr float kExpMagic = 12582912.0F + 127;

#define STROBE_TWELVE(x) x, x, x, x, x, x, x, x, x, x, x, x
/// What is added to, once for every lane of a row: the magic number and two coefficients.
constexpr float kExpAddends[] = {STROBE_TWELVE(kExpMagic), STROBE_TWELVE(4.1668400e-2F),
                                 STROBE_TWELVE(4.9999994e-1F)};
#undef STROBE_TWELVE

/// What v0 to v3 hold.
struct ExpFactors {
  float scale;
  float to_powers[3] = {1.44269504F, 0.693359375F, 2.12194440e-4F};
  float coefficients[4] = {8.3688507e-3F, 1.6666520e-1F, 1.3814321e-3F};
  float magic[4] = {kExpMagic, kExpMagic, kExpMagic, kExpMagic};
  float least[4] = {kLeast, kLeast, kLeast, kLeast};

  static constexpr float kLeast = kExpMagic - 126;
};

/// p[rows][12] = e^(scale * x[rows][12] - base[12]) as PreciseExp has it, but not 0 before -87.7;
/// adds the sum of its rows to sum[12]. An even number of rows, at least two.
inline void exp_rows_12(std::int64_t rows, const float* x, float scale, const float* base,
                        float* sum, float* p) {
  const ExpFactors factors{.scale = scale};
  const float* next;
  STROBE_EXP_ROWS;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
