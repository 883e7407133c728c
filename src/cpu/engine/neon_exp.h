#pragma once
// The exponentials of a block of scores on NEON, in assembly for two reasons. A chain of fourteen
// instructions waits for itself, and a core sees some sixty ahead, so that rows in three stages
// have to stand side by side, and no compiler found the registers for that. And FMLA overwrites
// what it adds to: a constant would first be copied by the units that multiply, which are the ones
// in short supply, so it is loaded anew each time.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
// The three vectors of a row go through the same instruction one after the other; a name stands for
// their registers. v0 holds factors.
#define STROBE_EXP_LEAST 1, 1, 1
#define STROBE_EXP_MAGIC 2, 2, 2
#define STROBE_EXP_SUM 3, 4, 5
#define STROBE_EXP_EVEN_REST 6, 7, 8
#define STROBE_EXP_ODD_REST 9, 10, 11
#define STROBE_EXP_EVEN_POWER 12, 13, 14
#define STROBE_EXP_ODD_POWER 15, 16, 17
#define STROBE_EXP_HIGH 18, 19, 20
#define STROBE_EXP_T 21, 22, 23
#define STROBE_EXP_N 24, 25, 26
#define STROBE_EXP_P 27, 28, 29

#define STROBE_THREE(...) STROBE_THREE_OF(__VA_ARGS__)
#define STROBE_THREE_OF(op, c0, c1, c2, a0, a1, a2, b0, b1, b2)  \
  #op " v" #c0 ".4s, v" #a0 ".4s, v" #b0 ".4s\n"                 \
  #op " v" #c1 ".4s, v" #a1 ".4s, v" #b1 ".4s\n"                 \
  #op " v" #c2 ".4s, v" #a2 ".4s, v" #b2 ".4s\n"
#define STROBE_THREE_BY(...) STROBE_THREE_BY_OF(__VA_ARGS__)
#define STROBE_THREE_BY_OF(op, c0, c1, c2, a0, a1, a2, b)  \
  #op " v" #c0 ".4s, v" #a0 ".4s, " b "\n"                 \
  #op " v" #c1 ".4s, v" #a1 ".4s, " b "\n"                 \
  #op " v" #c2 ".4s, v" #a2 ".4s, " b "\n"
#define STROBE_THREE_MOVE(...) STROBE_THREE_MOVE_OF(__VA_ARGS__)
#define STROBE_THREE_MOVE_OF(op, at, offset, c0, c1, c2)  \
  #op " q" #c0 ", [%[" #at "], #" #offset "]\n"           \
  #op " q" #c1 ", [%[" #at "], #" #offset " + 16]\n"      \
  #op " q" #c2 ", [%[" #at "], #" #offset " + 32]\n"
#define STROBE_THREE_LOAD(...) STROBE_THREE_MOVE(ldr, __VA_ARGS__)
#define STROBE_THREE_STORE(...) STROBE_THREE_MOVE(str, __VA_ARGS__)

// Three rows and a store, each line of another as its operands come in:
// the row at x to (rest, power), its distance from the base and the magic number plus the power of
// two next to it; x goes on to the next, or stays at the last;
// the row before, (next_rest, next_power), to what is left of the distance, and to the two highest
// terms of the polynomial of it;
// the row before that, which was in (rest, power), to the whole polynomial times the power of two;
// and the row before that to the sum and to memory.
// The order is the best of those that were tried on a Neoverse V1.
#define STROBE_EXP_ROW(rest, power, next_rest, next_power, store)       \
  STROBE_THREE_BY(shl, power, power, "#23")                             \
  STROBE_THREE_LOAD(constants, 96, STROBE_EXP_T)                        \
  STROBE_THREE(fmla, STROBE_EXP_T, rest, STROBE_EXP_HIGH)               \
  store                                                                 \
  STROBE_THREE_LOAD(constants, 144, STROBE_EXP_N)                       \
  STROBE_THREE(fadd, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_P)      \
  STROBE_THREE_LOAD(constants, 48, STROBE_EXP_HIGH)                     \
  STROBE_THREE(fmla, STROBE_EXP_N, rest, STROBE_EXP_T)                  \
  STROBE_THREE_LOAD(constants, 192, STROBE_EXP_P)                       \
  STROBE_THREE_LOAD(constants, 192, STROBE_EXP_T)                       \
  STROBE_THREE(fmla, STROBE_EXP_T, rest, STROBE_EXP_N)                  \
  STROBE_THREE(fsub, STROBE_EXP_N, next_power, STROBE_EXP_MAGIC)        \
  STROBE_THREE_BY(fmls, next_rest, STROBE_EXP_N, "v0.s[2]")             \
  STROBE_THREE(fmla, STROBE_EXP_P, rest, STROBE_EXP_T)                  \
  STROBE_THREE_LOAD(minus_base, 0, rest)                                \
  STROBE_THREE_LOAD(constants, 0, STROBE_EXP_T)                         \
  STROBE_THREE_BY(fmla, STROBE_EXP_T, next_rest, "v0.s[3]")             \
  STROBE_THREE(fmla, STROBE_EXP_HIGH, next_rest, STROBE_EXP_T)          \
  STROBE_THREE_LOAD(x, 0, STROBE_EXP_T)                                 \
  STROBE_THREE_BY(fmla, rest, STROBE_EXP_T, "v0.s[0]")                  \
  STROBE_THREE(fmax, rest, rest, STROBE_EXP_LEAST)                      \
  STROBE_THREE(fmul, STROBE_EXP_P, STROBE_EXP_P, power)                 \
  STROBE_THREE_LOAD(constants, 240, power)                              \
  STROBE_THREE_BY(fmla, power, rest, "v0.s[1]")                         \
  "add %[x], %[x], #48\n"                                               \
  "cmp %[x], %[last]\n"                                                 \
  "csel %[x], %[x], %[last], lo\n"
#define STROBE_EXP_EVEN_ROW(store)                                \
  STROBE_EXP_ROW(STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER,     \
                 STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER, store)
#define STROBE_EXP_ODD_ROW(store)                                 \
  STROBE_EXP_ROW(STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER,       \
                 STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER, store)

// Before the first row come three of zeros, with a power whose bits are zero, which are not stored.
#define STROBE_EXP_ROWS                                                                  \
  __asm__ volatile(                                                                      \
    "ldp q0, q1, [%[factors]]\n"                                                         \
    "ldr q2, [%[factors], #32]\n"                                                        \
    STROBE_NEON_ZERO4(3, 4, 5, 6)                                                        \
    STROBE_NEON_ZERO4(7, 8, 9, 10)                                                       \
    STROBE_NEON_ZERO4(11, 18, 19, 20)                                                    \
    STROBE_NEON_ZERO4(27, 28, 29, 30)                                                    \
    STROBE_THREE_LOAD(constants, 288, STROBE_EXP_EVEN_POWER)                             \
    STROBE_THREE_LOAD(constants, 288, STROBE_EXP_ODD_POWER)                              \
    STROBE_EXP_ODD_ROW()                                                                 \
    STROBE_EXP_EVEN_ROW()                                                                \
    STROBE_EXP_ODD_ROW()                                                                 \
    "1:\n"                                                                               \
    STROBE_EXP_EVEN_ROW(STROBE_THREE_STORE(p, 0, STROBE_EXP_P))                          \
    STROBE_EXP_ODD_ROW(STROBE_THREE_STORE(p, 48, STROBE_EXP_P))                          \
    "add %[p], %[p], #96\n"                                                              \
    "subs %[rows], %[rows], #2\n"                                                        \
    "b.ne 1b\n"                                                                          \
    STROBE_THREE_LOAD(sum, 0, STROBE_EXP_N)                                              \
    STROBE_THREE(fadd, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_N)                     \
    STROBE_THREE_STORE(sum, 0, STROBE_EXP_SUM)                                           \
    : [rows] "+&r"(rows), [x] "+&r"(x), [p] "+&r"(p)                                     \
    : [last] "r"(last), [minus_base] "r"(minus_base), [sum] "r"(sum),                    \
      [constants] "r"(kExpAddends), [factors] "r"(&factors)                              \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// 1.5 * 2^23, as in exp_difference, and the bias of an exponent: what is rounded by adding it has
/// in its low bits those of a power of two, which are 0 for -127.
constexpr float kExpMagic = 12582912.0F + 127;

#define STROBE_TWELVE(x) x, x, x, x, x, x, x, x, x, x, x, x
/// What is added to, once for every lane of a row: the coefficients of exp_difference, of the
/// highest power but one first, and the magic number. And the least power.
constexpr float kExpAddends[] = {STROBE_TWELVE(8.3688507e-3F),  STROBE_TWELVE(4.1668400e-2F),
                                 STROBE_TWELVE(1.6666520e-1F),  STROBE_TWELVE(4.9999994e-1F),
                                 STROBE_TWELVE(1.0F),           STROBE_TWELVE(kExpMagic),
                                 STROBE_TWELVE(kExpMagic - 127)};
#undef STROBE_TWELVE

/// What v0 to v2 hold.
struct ExpFactors {
  float scale;
  float log2e = 1.44269504F;
  float ln2 = 0.693147181F;
  float highest = 1.3814321e-3F;
  float least[4] = {kLeast, kLeast, kLeast, kLeast};
  float magic[4] = {kExpMagic, kExpMagic, kExpMagic, kExpMagic};

  static constexpr float kLeast = -127 * 0.693147181F;
};

/// p[rows][12] = e^(scale * x[rows][12] - base[12]), 0 below -87.7, with one rounding of the
/// difference and about one of the result; adds the sum of its rows to sum[12]. An even number of
/// rows, at least two. p may be x.
inline void exp_rows_12(std::int64_t rows, const float* x, float scale, const float* base,
                        float* sum, float* p) {
  const ExpFactors factors{.scale = scale};
  const float* const last = x + (rows - 1) * 12;
  float minus_base[12];
  for (int i = 0; i < 12; ++i) minus_base[i] = -base[i];
  STROBE_EXP_ROWS;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
