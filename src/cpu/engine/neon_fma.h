#pragma once
// The inner loops of fp32 products on NEON: FMLA by element, in assembly for the reason given in
// bfmmla_tiles.h, with the loads ahead of their use and none behind the end.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
#define STROBE_FMLA(c, b, a, lane) "fmla v" #c ".4s, v" #b ".4s, v" #a ".s[" #lane "]\n"

// 8 x 12. Accumulators: v8 + 3 row + vector. The rows' elements are in v0 and v1; the columns are
// in v2 to v4 in even steps and v5 to v7 in odd ones, loaded one step ahead.
#define STROBE_ROW(a, lane, b0, b1, b2, c0, c1, c2) \
  STROBE_FMLA(c0, b0, a, lane) STROBE_FMLA(c1, b1, a, lane) STROBE_FMLA(c2, b2, a, lane)
#define STROBE_STEP_8X12(b0, b1, b2, next_b0, next_b1, next_b2, next_a0, next_a1)  \
  STROBE_ROW(0, 0, b0, b1, b2, 8, 9, 10)                                           \
  next_b0                                                                          \
  STROBE_ROW(0, 1, b0, b1, b2, 11, 12, 13)                                         \
  STROBE_ROW(0, 2, b0, b1, b2, 14, 15, 16)                                         \
  next_b1                                                                          \
  STROBE_ROW(0, 3, b0, b1, b2, 17, 18, 19)                                         \
  next_a0                                                                          \
  STROBE_ROW(1, 0, b0, b1, b2, 20, 21, 22)                                         \
  STROBE_ROW(1, 1, b0, b1, b2, 23, 24, 25)                                         \
  next_b2                                                                          \
  STROBE_ROW(1, 2, b0, b1, b2, 26, 27, 28)                                         \
  STROBE_ROW(1, 3, b0, b1, b2, 29, 30, 31)                                         \
  next_a1

// One register at a time: pairs of them, or all at the beginning of a step, cost a Neoverse V1 3 %.
#define STROBE_LOAD(register, from, offset) "ldr q" #register ", [%[" #from "], #" #offset "]\n"
#define STROBE_FIRST_OPERANDS  \
  STROBE_LOAD(0, a, 0)         \
  STROBE_LOAD(1, a, 16)        \
  STROBE_LOAD(2, b, 0)         \
  STROBE_LOAD(3, b, 16)        \
  STROBE_LOAD(4, b, 32)
#define STROBE_EVEN_STEP                                                                \
  STROBE_STEP_8X12(2, 3, 4, STROBE_LOAD(5, b, 48), STROBE_LOAD(6, b, 64),               \
                   STROBE_LOAD(7, b, 80), STROBE_LOAD(0, odd_a, 0), STROBE_LOAD(1, odd_a, 16))
#define STROBE_ODD_STEP                                                                 \
  STROBE_STEP_8X12(5, 6, 7, STROBE_LOAD(2, b, 0), STROBE_LOAD(3, b, 16),                \
                   STROBE_LOAD(4, b, 32), STROBE_LOAD(0, a, 0), STROBE_LOAD(1, a, 16))

// One row of c, and on to the next.
#define STROBE_REPLACE_ROW(a, b, d)  \
  "stp q" #a ", q" #b ", [%[c]]\n"   \
  "str q" #d ", [%[c], #32]\n"       \
  "add %[c], %[c], %[c_stride]\n"
#define STROBE_ADD_ROW(x, y, z, a, b, d)       \
  "ldp q" #x ", q" #y ", [%[c]]\n"             \
  "ldr q" #z ", [%[c], #32]\n"                 \
  "fadd v" #a ".4s, v" #a ".4s, v" #x ".4s\n"  \
  "fadd v" #b ".4s, v" #b ".4s, v" #y ".4s\n"  \
  "fadd v" #d ".4s, v" #d ".4s, v" #z ".4s\n"  \
  STROBE_REPLACE_ROW(a, b, d)
#define STROBE_ROWS_8X12(ROW)  \
  ROW(8, 9, 10)                \
  ROW(11, 12, 13)              \
  ROW(14, 15, 16)              \
  ROW(17, 18, 19)              \
  ROW(20, 21, 22)              \
  ROW(23, 24, 25)              \
  ROW(26, 27, 28)              \
  ROW(29, 30, 31)
#define STROBE_REPLACE_8X12 STROBE_ROWS_8X12(STROBE_REPLACE_ROW)
// The largest of every column so far is at peak.
#define STROBE_PEAK_ROW(a, b, d)      \
  STROBE_REPLACE_ROW(a, b, d)         \
  "fmax v0.4s, v0.4s, v" #a ".4s\n"   \
  "fmax v1.4s, v1.4s, v" #b ".4s\n"   \
  "fmax v2.4s, v2.4s, v" #d ".4s\n"
#define STROBE_PEAKS_8X12            \
  "ldp q0, q1, [%[peak]]\n"          \
  "ldr q2, [%[peak], #32]\n"         \
  STROBE_ROWS_8X12(STROBE_PEAK_ROW)  \
  "stp q0, q1, [%[peak]]\n"          \
  "str q2, [%[peak], #32]\n"
#define STROBE_ADD_8X12                \
  STROBE_ADD_ROW(0, 1, 2, 8, 9, 10)    \
  STROBE_ADD_ROW(3, 4, 5, 11, 12, 13)  \
  STROBE_ADD_ROW(0, 1, 2, 14, 15, 16)  \
  STROBE_ADD_ROW(3, 4, 5, 17, 18, 19)  \
  STROBE_ADD_ROW(0, 1, 2, 20, 21, 22)  \
  STROBE_ADD_ROW(3, 4, 5, 23, 24, 25)  \
  STROBE_ADD_ROW(0, 1, 2, 26, 27, 28)  \
  STROBE_ADD_ROW(3, 4, 5, 29, 30, 31)

// An odd count does its first step alone. The last pair of steps stands by itself, for nothing is
// loaded ahead in it. What LEAVE takes beside the strides comes last.
#define STROBE_TILE_8X12(LEAVE, ...)                                                         \
  __asm__ volatile(                                                                          \
    STROBE_NEON_ZERO_TILE                                                                    \
    STROBE_FIRST_OPERANDS                                                                    \
    "tbz %[count], #0, 1f\n"                                                                 \
    STROBE_STEP_8X12(2, 3, 4, , , , , )                                                      \
    "subs %[count], %[count], #1\n"                                                          \
    "b.eq 4f\n"                                                                              \
    "add %[a], %[a], %[a_stride]\n"                                                          \
    "add %[b], %[b], #48\n"                                                                  \
    STROBE_FIRST_OPERANDS                                                                    \
    "1:\n"                                                                                   \
    "subs %[count], %[count], #2\n"                                                          \
    "b.eq 3f\n"                                                                              \
    "2:\n"                                                                                   \
    "add %[odd_a], %[a], %[a_stride]\n"                                                      \
    STROBE_EVEN_STEP                                                                         \
    "add %[a], %[odd_a], %[a_stride]\n"                                                      \
    "add %[b], %[b], #96\n"                                                                  \
    STROBE_ODD_STEP                                                                          \
    "subs %[count], %[count], #2\n"                                                          \
    "b.ne 2b\n"                                                                              \
    "3:\n"                                                                                   \
    "add %[odd_a], %[a], %[a_stride]\n"                                                      \
    STROBE_EVEN_STEP                                                                         \
    STROBE_STEP_8X12(5, 6, 7, , , , , )                                                      \
    "4:\n"                                                                                   \
    LEAVE                                                                                    \
    : [count] "+&r"(count), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [odd_a] "=&r"(odd_a)   \
    : [a_stride] "r"(a_bytes), [c_stride] "r"(c_bytes) __VA_OPT__(,) __VA_ARGS__             \
    : "cc", "memory", STROBE_NEON_REGISTERS)

// 12 x 8. Accumulators: v8 + 2 row + vector. The rows' elements are in v0 to v2 in even steps and v5
// to v7 in odd ones, loaded one step ahead; the columns are in v3 and v4.
#define STROBE_FOUR_ROWS(a, c0, c1, c2, c3, c4, c5, c6, c7)  \
  STROBE_FMLA(c0, 3, a, 0) STROBE_FMLA(c1, 4, a, 0)          \
  STROBE_FMLA(c2, 3, a, 1) STROBE_FMLA(c3, 4, a, 1)          \
  STROBE_FMLA(c4, 3, a, 2) STROBE_FMLA(c5, 4, a, 2)          \
  STROBE_FMLA(c6, 3, a, 3) STROBE_FMLA(c7, 4, a, 3)
#define STROBE_STEP_12X8(a0, a1, a2, next_a, next_b)           \
  STROBE_FOUR_ROWS(a0, 8, 9, 10, 11, 12, 13, 14, 15)           \
  next_a                                                       \
  STROBE_FOUR_ROWS(a1, 16, 17, 18, 19, 20, 21, 22, 23)         \
  STROBE_FOUR_ROWS(a2, 24, 25, 26, 27, 28, 29, 30, 31)         \
  next_b
#define STROBE_NEXT_A(r, s, t)                \
  "add %[a], %[a], %[a_stride]\n"             \
  "ldp q" #r ", q" #s ", [%[a]]\n"            \
  "ldr q" #t ", [%[a], #32]\n"
#define STROBE_NEXT_B                         \
  "add %[b], %[b], %[b_stride]\n"             \
  "ldp q3, q4, [%[b]]\n"
#define STROBE_ADD_ROW_8(x, y, a, b)           \
  "ldp q" #x ", q" #y ", [%[c]]\n"             \
  "fadd v" #a ".4s, v" #a ".4s, v" #x ".4s\n"  \
  "fadd v" #b ".4s, v" #b ".4s, v" #y ".4s\n"  \
  "stp q" #a ", q" #b ", [%[c]]\n"             \
  "add %[c], %[c], %[c_stride]\n"
#define STROBE_ADD_FOUR_ROWS(c0, c1, c2, c3, c4, c5, c6, c7)  \
  STROBE_ADD_ROW_8(0, 1, c0, c1)                              \
  STROBE_ADD_ROW_8(2, 3, c2, c3)                              \
  STROBE_ADD_ROW_8(4, 5, c4, c5)                              \
  STROBE_ADD_ROW_8(6, 7, c6, c7)
// The last pair of steps stands by itself, as above.
#define STROBE_TILE_12X8                                                                   \
  __asm__ volatile(                                                                        \
    STROBE_NEON_ZERO_TILE                                                                  \
    "ldp q0, q1, [%[a]]\n"                                                                 \
    "ldr q2, [%[a], #32]\n"                                                                \
    "ldp q3, q4, [%[b]]\n"                                                                 \
    "subs %[count], %[count], #2\n"                                                        \
    "b.eq 2f\n"                                                                            \
    "1:\n"                                                                                 \
    STROBE_STEP_12X8(0, 1, 2, STROBE_NEXT_A(5, 6, 7), STROBE_NEXT_B)                       \
    STROBE_STEP_12X8(5, 6, 7, STROBE_NEXT_A(0, 1, 2), STROBE_NEXT_B)                       \
    "subs %[count], %[count], #2\n"                                                        \
    "b.ne 1b\n"                                                                            \
    "2:\n"                                                                                 \
    STROBE_STEP_12X8(0, 1, 2, STROBE_NEXT_A(5, 6, 7), STROBE_NEXT_B)                       \
    STROBE_STEP_12X8(5, 6, 7, , )                                                          \
    STROBE_ADD_FOUR_ROWS(8, 9, 10, 11, 12, 13, 14, 15)                                     \
    "cmp %[groups], #2\n"                                                                  \
    "b.lt 3f\n"                                                                            \
    STROBE_ADD_FOUR_ROWS(16, 17, 18, 19, 20, 21, 22, 23)                                   \
    "b.eq 3f\n"                                                                            \
    STROBE_ADD_FOUR_ROWS(24, 25, 26, 27, 28, 29, 30, 31)                                   \
    "3:\n"                                                                                 \
    : [count] "+&r"(count), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)                       \
    : [a_stride] "r"(a_bytes), [b_stride] "r"(b_bytes), [c_stride] "r"(c_bytes),           \
      [groups] "r"(groups)                                                                 \
    : "cc", "memory", STROBE_NEON_REGISTERS)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// c[8][12] of the sum over k of a[k][8] * b[k][12]: rows of `a` a_stride apart, of b 12 apart, of
/// c c_stride. count >= 1. Scores and sums of values both have this form.
template <Into into>
inline void fma_tile_8x12(std::int64_t count, const float* a, std::int64_t a_stride, const float* b,
                          float* c, std::int64_t c_stride) {
  const std::int64_t a_bytes = a_stride * 4;
  const std::int64_t c_bytes = c_stride * 4;
  const float* odd_a;
  if constexpr (into == Into::replace) {
    STROBE_TILE_8X12(STROBE_REPLACE_8X12);
  } else {
    STROBE_TILE_8X12(STROBE_ADD_8X12);
  }
}

/// The same instead of what is in c, whose largest elements join those of peak[12]; one that is no
/// number is larger than any.
inline void fma_tile_8x12_and_peaks(std::int64_t count, const float* a, std::int64_t a_stride,
                                    const float* b, float* c, std::int64_t c_stride, float* peak) {
  const std::int64_t a_bytes = a_stride * 4;
  const std::int64_t c_bytes = c_stride * 4;
  const float* odd_a;
  STROBE_TILE_8X12(STROBE_PEAKS_8X12, [peak] "r"(peak));
}

/// c[4 * groups][8] += the sum over k of a[k][12] * b[k][8]: rows of `a` a_stride apart, of b
/// b_stride, of c c_stride. Three groups of four are read of `a`, up to three are stored. An even
/// count, at least two.
inline void fma_tile_12x8(std::int64_t count, const float* a, std::int64_t a_stride, const float* b,
                          std::int64_t b_stride, float* c, std::int64_t c_stride,
                          std::int64_t groups) {
  const std::int64_t a_bytes = a_stride * 4;
  const std::int64_t b_bytes = b_stride * 4;
  const std::int64_t c_bytes = c_stride * 4;
  STROBE_TILE_12X8;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#undef STROBE_FMLA
#undef STROBE_ROW
#undef STROBE_STEP_8X12
#undef STROBE_LOAD
#undef STROBE_FIRST_OPERANDS
#undef STROBE_EVEN_STEP
#undef STROBE_ODD_STEP
#undef STROBE_REPLACE_ROW
#undef STROBE_ADD_ROW
#undef STROBE_ROWS_8X12
#undef STROBE_REPLACE_8X12
#undef STROBE_PEAK_ROW
#undef STROBE_PEAKS_8X12
#undef STROBE_ADD_8X12
#undef STROBE_TILE_8X12
#undef STROBE_FOUR_ROWS
#undef STROBE_STEP_12X8
#undef STROBE_NEXT_A
#undef STROBE_NEXT_B
#undef STROBE_ADD_ROW_8
#undef STROBE_ADD_FOUR_ROWS
#undef STROBE_TILE_12X8
