#pragma once
// The exponentials of a block of scores on NEON, in assembly for two reasons. A chain of sixteen
// instructions waits for itself, and a core sees some sixty ahead, so that rows in five stages have
// to stand side by side, and no compiler found the registers for that. And FMLA overwrites what it
// adds to: a constant would first be copied by the units that multiply, which are the ones in short
// supply, so it is loaded anew each time.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"
#include "cpu/generic/math.h"

// One instruction or macro a line:
// clang-format off
// The three vectors of a row go through the same instruction one after the other; a name stands for
// their registers. v0 and v1 hold factors.
#define STROBE_EXP_MAGIC 2, 2, 2
#define STROBE_EXP_SUM 4, 5, 6
#define STROBE_EXP_X 7, 8, 9
#define STROBE_EXP_POWER 10, 11, 12
#define STROBE_EXP_EVEN_REST 13, 14, 15
#define STROBE_EXP_ODD_REST 16, 17, 18
#define STROBE_EXP_HIGH 19, 20, 21
#define STROBE_EXP_P 22, 23, 24
#define STROBE_EXP_T 25, 26, 27
#define STROBE_EXP_N 28, 29, 30

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

// Five rows, each line of another as its operands come in:
// the first is at `from`; of it X and the magic number plus the power of two next to the result,
// which is also put where the result will be, for there are no registers to keep it in;
// of the second, what is left of the distance from the base, negative, in `rest`;
// of the third, in next_rest, the higher terms of its polynomial;
// of the fourth, which was in `rest`, the others;
// and the fifth is finished at p: the polynomial times the power goes to the sum and to memory.
// The order is the best of those that were tried on a Neoverse V1. Behind the last row, x is there
// once more and what is put goes nowhere.
#define STROBE_EXP_ROW(rest, next_rest, multiply, finish)               \
  multiply                                                              \
  STROBE_THREE_LOAD(constants, 144, STROBE_EXP_T)                       \
  STROBE_THREE_LOAD(constants, 192, STROBE_EXP_N)                       \
  STROBE_THREE(fmls, STROBE_EXP_T, rest, STROBE_EXP_HIGH)               \
  STROBE_THREE(fmls, STROBE_EXP_N, rest, STROBE_EXP_T)                  \
  STROBE_THREE_LOAD(constants, 0, STROBE_EXP_T)                         \
  STROBE_THREE_BY(fmls, STROBE_EXP_T, next_rest, "v1.s[0]")             \
  finish                                                                \
  STROBE_THREE_LOAD(constants, 192, STROBE_EXP_P)                       \
  STROBE_THREE(fmls, STROBE_EXP_P, rest, STROBE_EXP_N)                  \
  STROBE_THREE_LOAD(constants, 48, STROBE_EXP_N)                        \
  STROBE_THREE(fmls, STROBE_EXP_N, next_rest, STROBE_EXP_T)             \
  STROBE_THREE_LOAD(lanes, 96, rest)                                    \
  STROBE_THREE_LOAD(constants, 96, STROBE_EXP_HIGH)                     \
  STROBE_THREE(fmls, STROBE_EXP_HIGH, next_rest, STROBE_EXP_N)          \
  STROBE_THREE(fsub, STROBE_EXP_N, STROBE_EXP_POWER, STROBE_EXP_MAGIC)  \
  STROBE_THREE_BY(fmla, rest, STROBE_EXP_N, "v0.s[2]")                  \
  STROBE_THREE_LOAD(lanes, 0, STROBE_EXP_T)                             \
  STROBE_THREE_BY(fmls, rest, STROBE_EXP_X, "v0.s[1]")                  \
  STROBE_THREE_LOAD(from, 0, STROBE_EXP_X)                              \
  STROBE_THREE(fmax, STROBE_EXP_X, STROBE_EXP_X, STROBE_EXP_T)          \
  STROBE_THREE_BY(fmls, rest, STROBE_EXP_N, "v0.s[3]")                  \
  STROBE_THREE_LOAD(lanes, 48, STROBE_EXP_POWER)                        \
  STROBE_THREE_BY(fmla, STROBE_EXP_POWER, STROBE_EXP_X, "v0.s[0]")      \
  STROBE_THREE(fadd, STROBE_EXP_POWER, STROBE_EXP_POWER, STROBE_EXP_MAGIC) \
  STROBE_THREE_STORE(to, 0, STROBE_EXP_POWER)                           \
  "add %[x], %[x], #48\n"                                               \
  "cmp %[x], %[end]\n"                                                  \
  "add %[to], %[x], %[x_to_p]\n"                                        \
  "csel %[from], %[x], %[from], lo\n"                                   \
  "csel %[to], %[to], %[nowhere], lo\n"
#define STROBE_EXP_MULTIPLY(offset)                            \
  STROBE_THREE_LOAD(p, offset, STROBE_EXP_T)                   \
  STROBE_THREE_BY(shl, STROBE_EXP_T, STROBE_EXP_T, "#23")      \
  STROBE_THREE(fmul, STROBE_EXP_P, STROBE_EXP_P, STROBE_EXP_T)
#define STROBE_EXP_FINISH(offset)                                   \
  STROBE_THREE(fadd, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_P)  \
  STROBE_THREE_STORE(p, offset, STROBE_EXP_P)

// The first four turns have no fifth row, and what they make of rows that are not there is not used.
#define STROBE_EXP_ROWS                                                                  \
  __asm__ volatile(                                                                      \
    "ldp q0, q1, [%[factors]]\n"                                                         \
    "ldr q2, [%[factors], #32]\n"                                                        \
    "movi v4.2d, #0\n"                                                                   \
    "movi v5.2d, #0\n"                                                                   \
    "movi v6.2d, #0\n"                                                                   \
    STROBE_EXP_ROW(STROBE_EXP_EVEN_REST, STROBE_EXP_ODD_REST, , )                        \
    STROBE_EXP_ROW(STROBE_EXP_ODD_REST, STROBE_EXP_EVEN_REST, , )                        \
    STROBE_EXP_ROW(STROBE_EXP_EVEN_REST, STROBE_EXP_ODD_REST, , )                        \
    STROBE_EXP_ROW(STROBE_EXP_ODD_REST, STROBE_EXP_EVEN_REST, , )                        \
    "1:\n"                                                                               \
    STROBE_EXP_ROW(STROBE_EXP_EVEN_REST, STROBE_EXP_ODD_REST,                            \
                   STROBE_EXP_MULTIPLY(0), STROBE_EXP_FINISH(0))                         \
    STROBE_EXP_ROW(STROBE_EXP_ODD_REST, STROBE_EXP_EVEN_REST,                            \
                   STROBE_EXP_MULTIPLY(48), STROBE_EXP_FINISH(48))                       \
    "add %[p], %[p], #96\n"                                                              \
    "subs %[rows], %[rows], #2\n"                                                        \
    "b.ne 1b\n"                                                                          \
    STROBE_THREE_LOAD(sum, 0, STROBE_EXP_N)                                              \
    STROBE_THREE(fadd, STROBE_EXP_SUM, STROBE_EXP_SUM, STROBE_EXP_N)                     \
    STROBE_THREE_STORE(sum, 0, STROBE_EXP_SUM)                                           \
    : [rows] "+&r"(rows), [x] "+&r"(x), [p] "+&r"(p), [from] "+&r"(from), [to] "+&r"(to) \
    : [end] "r"(end), [x_to_p] "r"(x_to_p), [nowhere] "r"(nowhere), [lanes] "r"(&lanes), \
      [sum] "r"(sum), [constants] "r"(kExpAddends), [factors] "r"(&factors)              \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

#define STROBE_TWELVE(x) x, x, x, x, x, x, x, x, x, x, x, x
/// What is added to, once for every lane of a row: the coefficients of exp_difference, of the
/// highest power but one first.
constexpr float kExpAddends[] = {STROBE_TWELVE(8.3688507e-3F), STROBE_TWELVE(4.1668400e-2F),
                                 STROBE_TWELVE(1.6666520e-1F), STROBE_TWELVE(4.9999994e-1F),
                                 STROBE_TWELVE(1.0F)};
#undef STROBE_TWELVE

/// What v0 to v2 hold.
struct ExpFactors {
  float scale_log2e;
  float scale;
  float ln2[2] = {0.693359375F, 2.12194440e-4F};  // the first less the second
  float highest[4] = {1.3814321e-3F};
  float magic[4] = {kMagic, kMagic, kMagic, kMagic};
};

/// What every lane has of its own.
struct ExpLanes {
  float least[12];  // x, of which the power is 2^-127
  float shift[12];
  float base[12];
};

/// Up to here the power next to a result is found.
constexpr float kExpLargestBase = 0x1p20F;

/// From here on `least` is finite for every base. Were it infinite, so would scores be that are no
/// smaller, and what is left of their distance from a base no number.
constexpr float kExpSmallestScale = 0x1p-106F;

/// p[rows][12] = e^(scale * x[rows][12] - base[12]) as PreciseExp has it, if not to the last bit,
/// but 0 below -87.7; adds the sum of its rows to sum[12]. An even number of rows, at least two. p
/// may be x. scale >= kExpSmallestScale; a base is at most kExpLargestBase in size, or infinite, of
/// a row that saw nothing.
inline void exp_rows_12(std::int64_t rows, const float* x, float scale, const float* base,
                        float* sum, float* p) {
  constexpr float kLog2E = 1.44269504F;
  const ExpFactors factors{.scale_log2e = scale * kLog2E, .scale = scale};
  ExpLanes lanes;
  for (int i = 0; i < 12; ++i) {
    lanes.base[i] = base[i] == __builtin_inff() ? 2 * kExpLargestBase : base[i];
    lanes.shift[i] = -kLog2E * lanes.base[i];
    lanes.least[i] = (lanes.base[i] - 127 / kLog2E) / scale;
  }
  float nowhere[12];
  const float* const end = x + rows * 12;
  const float* from = x;
  float* to = p;
  const std::int64_t x_to_p =
      reinterpret_cast<std::intptr_t>(p) - reinterpret_cast<std::intptr_t>(x);
  STROBE_EXP_ROWS;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
