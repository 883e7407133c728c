#pragma once
// The exponentials of a block of scores as BfmmlaEngine multiplies them, in assembly for the
// reasons given in neon_exp.h, and in the same way.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
// Four rows at a time of one vector of queries, which go through the same instruction one after the
// other; a name stands for their registers. v0 holds what they are multiplied by, v1 the magic
// number, v2 the least power, v31 the sum.
#define STROBE_EXP_T 3, 4, 5, 6
#define STROBE_EXP_P 7, 8, 9, 10
#define STROBE_EXP_Q 11, 12, 13, 14
#define STROBE_EXP_EVEN_REST 15, 16, 17, 18
#define STROBE_EXP_EVEN_POWER 19, 20, 21, 22
#define STROBE_EXP_ODD_REST 23, 24, 25, 26
#define STROBE_EXP_ODD_POWER 27, 28, 29, 30

#define STROBE_FOUR(...) STROBE_FOUR_OF(__VA_ARGS__)
#define STROBE_FOUR_OF(op, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3)  \
  #op " v" #c0 ".4s, v" #a0 ".4s, v" #b0 ".4s\n"                            \
  #op " v" #c1 ".4s, v" #a1 ".4s, v" #b1 ".4s\n"                            \
  #op " v" #c2 ".4s, v" #a2 ".4s, v" #b2 ".4s\n"                            \
  #op " v" #c3 ".4s, v" #a3 ".4s, v" #b3 ".4s\n"
#define STROBE_FOUR_BY(...) STROBE_FOUR_BY_OF(__VA_ARGS__)
#define STROBE_FOUR_BY_OF(op, c0, c1, c2, c3, a0, a1, a2, a3, b)  \
  #op " v" #c0 ".4s, v" #a0 ".4s, " b "\n"                        \
  #op " v" #c1 ".4s, v" #a1 ".4s, " b "\n"                        \
  #op " v" #c2 ".4s, v" #a2 ".4s, " b "\n"                        \
  #op " v" #c3 ".4s, v" #a3 ".4s, " b "\n"
#define STROBE_FOUR_ADDENDS(...) STROBE_FOUR_ADDENDS_OF(__VA_ARGS__)
#define STROBE_FOUR_ADDENDS_OF(offset, c0, c1, c2, c3)    \
  "ldp q" #c0 ", q" #c1 ", [%[addends], #" #offset "]\n"  \
  "ldp q" #c2 ", q" #c3 ", [%[addends], #" #offset "]\n"
#define STROBE_FOUR_SCORES(...) STROBE_FOUR_SCORES_OF(__VA_ARGS__)
#define STROBE_FOUR_SCORES_OF(from, offset, c0, c1, c2, c3)  \
  "ldr q" #c0 ", [%[" #from "], #" #offset "]\n"             \
  "ldr q" #c1 ", [%[" #from "], #" #offset " + 48]\n"        \
  "ldr q" #c2 ", [%[" #from "], #" #offset " + 96]\n"        \
  "ldr q" #c3 ", [%[" #from "], #" #offset " + 144]\n"
// Rounds four rows, adds them to the sum and stores them with the rows together.
#define STROBE_FOUR_STORE(...) STROBE_FOUR_STORE_OF(__VA_ARGS__)
#define STROBE_FOUR_STORE_OF(offset, c0, c1, c2, c3)  \
  "bfcvtn v7.4h, v" #c0 ".4s\n"                       \
  "bfcvtn v8.4h, v" #c2 ".4s\n"                       \
  "fadd v31.4s, v31.4s, v" #c0 ".4s\n"                \
  "bfcvtn2 v7.8h, v" #c1 ".4s\n"                      \
  "bfcvtn2 v8.8h, v" #c3 ".4s\n"                      \
  "fadd v31.4s, v31.4s, v" #c1 ".4s\n"                \
  "zip1 v9.8h, v7.8h, v8.8h\n"                        \
  "zip2 v10.8h, v7.8h, v8.8h\n"                       \
  "fadd v31.4s, v31.4s, v" #c2 ".4s\n"                \
  "zip1 v7.8h, v9.8h, v10.8h\n"                       \
  "zip2 v8.8h, v9.8h, v10.8h\n"                       \
  "fadd v31.4s, v31.4s, v" #c3 ".4s\n"                \
  "stp q7, q8, [%[p], #" #offset "]\n"

// exp2_short of generic/math.h, rows at `from` to (rest, power), and between these lines the rows
// before, from (old, old_power) to probabilities: 2^n + 2^n (2^rest - 1), with 2^n from the low bits
// of the power, which is 0 for the least.
#define STROBE_EXP_ROWS_OF(from, from_offset, rest, power, old, old_power, to_offset)  \
  STROBE_FOUR_SCORES(from, from_offset, rest)                                          \
  STROBE_FOUR_ADDENDS(32, STROBE_EXP_P)                                                \
  STROBE_FOUR_BY(fmla, STROBE_EXP_P, old, "v0.s[1]")                                   \
  STROBE_FOUR_ADDENDS(0, STROBE_EXP_T)                                                 \
  STROBE_FOUR_BY(fmla, STROBE_EXP_T, rest, "v0.s[0]")                                  \
  STROBE_FOUR_ADDENDS(64, STROBE_EXP_Q)                                                \
  STROBE_FOUR(fmla, STROBE_EXP_Q, old, STROBE_EXP_P)                                   \
  STROBE_FOUR_BY(fmax, STROBE_EXP_T, STROBE_EXP_T, "v2.4s")                            \
  STROBE_FOUR_ADDENDS(96, STROBE_EXP_P)                                                \
  STROBE_FOUR_BY(fadd, power, STROBE_EXP_T, "v1.4s")                                   \
  STROBE_FOUR(fmla, STROBE_EXP_P, old, STROBE_EXP_Q)                                   \
  STROBE_FOUR_BY(shl, old_power, old_power, "#23")                                     \
  STROBE_FOUR_BY(fsub, rest, power, "v1.4s")                                           \
  STROBE_FOUR(fmul, old, old, STROBE_EXP_P)                                            \
  STROBE_FOUR(fsub, rest, STROBE_EXP_T, rest)                                          \
  STROBE_FOUR(fmla, old_power, old_power, old)                                         \
  STROBE_FOUR_STORE(to_offset, old_power)

// Before the first rows come some whose power is the least: all zeros, stored where the first will
// be. With the last eight rows, those ahead are the first of these again.
#define STROBE_EXP_TO_BF16                                                         \
  __asm__ volatile(                                                                \
    "ldp q0, q1, [%[factors]]\n"                                                   \
    "ldr q2, [%[factors], #32]\n"                                                  \
    STROBE_NEON_ZERO4(23, 24, 25, 26)                                              \
    STROBE_NEON_ZERO4(27, 28, 29, 30)                                              \
    "movi v31.2d, #0\n"                                                            \
    STROBE_EXP_ROWS_OF(x, 0, STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER,          \
                       STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER, 0)               \
    "1:\n"                                                                         \
    "subs %[rows], %[rows], #8\n"                                                  \
    "add %[next], %[x], #384\n"                                                    \
    "csel %[next], %[next], %[x], ne\n"                                            \
    STROBE_EXP_ROWS_OF(x, 192, STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER,          \
                       STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER, 0)             \
    STROBE_EXP_ROWS_OF(next, 0, STROBE_EXP_EVEN_REST, STROBE_EXP_EVEN_POWER,       \
                       STROBE_EXP_ODD_REST, STROBE_EXP_ODD_POWER, 96)              \
    "mov %[x], %[next]\n"                                                          \
    "add %[p], %[p], #192\n"                                                       \
    "b.ne 1b\n"                                                                    \
    "ldr q3, [%[sum]]\n"                                                           \
    "fadd v3.4s, v3.4s, v31.4s\n"                                                  \
    "str q3, [%[sum]]\n"                                                           \
    : [rows] "+&r"(rows), [x] "+&r"(x), [p] "+&r"(p), [next] "=&r"(next)           \
    : [sum] "r"(sum), [addends] "r"(addends), [factors] "r"(&factors)              \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// What v0 to v2 hold: as in exp2_short, with the bias of an exponent in the magic number, so that
/// the low bits of what is rounded by adding it are those of a power of two.
struct ShortExpFactors {
  float scale;
  float highest[3] = {9.582852944731712e-3F};
  float magic[4] = {kMagic, kMagic, kMagic, kMagic};
  float least[4] = {-127.0F, -127.0F, -127.0F, -127.0F};

  static constexpr float kMagic = 12582912.0F + 127;
};

/// p[rows / 4][12 queries][4] = e^(scale * x[rows][12] - base[12]) as ShortExp has it, but 0 only
/// below 2^-126.5; adds the sum of its rows, before they are rounded, to sum[12]. A multiple of
/// eight rows.
inline void exp_rows_to_bf16(std::int64_t all_rows, const float* scores, float scale,
                             const float* base, float* sums, std::uint16_t* block) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kAddends[] = {5.590642616152763e-2F, 2.4024099111557007e-1F,
                                6.931241750717163e-1F};
  const ShortExpFactors factors{.scale = scale * kLog2E};
  float addends[4 * 8];
  for (int i = 8; i < 4 * 8; ++i) addends[i] = kAddends[i / 8 - 1];
  for (int v = 0; v < 3; ++v) {
    for (int i = 0; i < 8; ++i) addends[i] = -kLog2E * base[4 * v + i % 4];
    std::int64_t rows = all_rows;
    const float* x = scores + 4 * v;
    const float* next;
    float* const sum = sums + 4 * v;
    std::uint16_t* p = block + 16 * v;
    STROBE_EXP_TO_BF16;
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#undef STROBE_EXP_T
#undef STROBE_EXP_P
#undef STROBE_EXP_Q
#undef STROBE_EXP_EVEN_REST
#undef STROBE_EXP_EVEN_POWER
#undef STROBE_EXP_ODD_REST
#undef STROBE_EXP_ODD_POWER
#undef STROBE_FOUR
#undef STROBE_FOUR_OF
#undef STROBE_FOUR_BY
#undef STROBE_FOUR_BY_OF
#undef STROBE_FOUR_ADDENDS
#undef STROBE_FOUR_ADDENDS_OF
#undef STROBE_FOUR_SCORES
#undef STROBE_FOUR_SCORES_OF
#undef STROBE_FOUR_STORE
#undef STROBE_FOUR_STORE_OF
#undef STROBE_EXP_ROWS_OF
#undef STROBE_EXP_TO_BF16
