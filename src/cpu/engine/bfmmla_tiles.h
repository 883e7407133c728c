#pragma once
// The inner loops of BfmmlaEngine. BFMMLA multiplies 2 rows of four bf16 by 2 rows of four and adds
// the 2 x 2 products to four floats. A tile has 4 pairs of rows on its short side (x, 8 rows) and 6
// on its long side (y, 12 rows): 24 accumulators, as many as four pipes with a latency of five
// cycles need, and 8 registers for operands.
//
// They are assembly from the first load to the last store, because compilers spill: GCC 12 sends an
// accumulator through the stack in every step. Each load stands in front of its use by as much as
// the registers allow; in the last step nothing is loaded ahead, so that nothing is read behind the
// end.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
#define STROBE_LOAD_PAIR(r, s, base, offset) "ldp q" #r ", q" #s ", [%[" #base "], #" #offset "]\n"

// Operands: x in v0 to v3; of y the first two pairs in v4 to v7, the third where the first was.
// Accumulators: v8 + 4 y + x.
#define STROBE_ROWS_X(c, x, y) "bfmmla v" #c ".4s, v" #x ".8h, v" #y ".8h\n"
#define STROBE_ROWS_Y(c, x, y) "bfmmla v" #c ".4s, v" #y ".8h, v" #x ".8h\n"
#define STROBE_FOUR(MUL, x0, x1, y0, y1, c00, c01, c10, c11) \
  MUL(c00, x0, y0) MUL(c01, x0, y1) MUL(c10, x1, y0) MUL(c11, x1, y1)

// One product of the whole tile. x and the first two pairs of y are loaded; the third pair, and
// then the operands of what comes next, are loaded as soon as their registers are free.
#define STROBE_PRODUCT(MUL, last_y, next_middle_y, next_x0, next_x2, next_y)  \
  STROBE_FOUR(MUL, 0, 1, 4, 5, 8, 12, 9, 13)                                  \
  STROBE_FOUR(MUL, 2, 3, 4, 5, 10, 14, 11, 15)                                \
  last_y                                                                      \
  STROBE_FOUR(MUL, 0, 1, 6, 7, 16, 20, 17, 21)                                \
  STROBE_FOUR(MUL, 2, 3, 6, 7, 18, 22, 19, 23)                                \
  next_middle_y                                                               \
  STROBE_FOUR(MUL, 0, 1, 4, 5, 24, 28, 25, 29)                                \
  next_x0                                                                     \
  STROBE_FOUR(MUL, 2, 3, 4, 5, 26, 30, 27, 31)                                \
  next_x2                                                                     \
  next_y

// An accumulator is two rows of two: {r0 c0, r0 c1, r1 c0, r1 c1}. The low halves of two neighbours
// are four columns of the first row, the high halves of the second.
#define STROBE_ZIP(low, high, a, b)                  \
  "zip1 v" #low ".2d, v" #a ".2d, v" #b ".2d\n"      \
  "zip2 v" #high ".2d, v" #a ".2d, v" #b ".2d\n"

// Two rows of c from v0 to v5, and on to the next.
#define STROBE_STORE_ROWS      \
  "stp q0, q1, [%[c]]\n"       \
  "stp q2, q3, [%[c], #32]\n"  \
  "stp q4, q5, [%[c], #64]\n"  \
  "add %[c], %[c], #96\n"

// Rows 2i and 2i + 1 of c from the accumulators of x pair i. Storing low halves would need no
// shuffle, but takes more than whole registers do.
#define STROBE_REPLACE_PAIR(a, b, c, d, e, f)  \
  STROBE_ZIP(0, 3, a, b)                       \
  STROBE_ZIP(1, 4, c, d)                       \
  STROBE_ZIP(2, 5, e, f)                       \
  STROBE_STORE_ROWS
#define STROBE_REPLACE                         \
  STROBE_REPLACE_PAIR(8, 12, 16, 20, 24, 28)   \
  STROBE_REPLACE_PAIR(9, 13, 17, 21, 25, 29)   \
  STROBE_REPLACE_PAIR(10, 14, 18, 22, 26, 30)  \
  STROBE_REPLACE_PAIR(11, 15, 19, 23, 27, 31)

#define STROBE_ADD_PAIR(a, b, c, d, e, f)      \
  "ldp q0, q1, [%[c]]\n"                       \
  "ldp q2, q3, [%[c], #32]\n"                  \
  "ldp q4, q5, [%[c], #64]\n"                  \
  STROBE_ZIP(6, b, a, b)                       \
  STROBE_ZIP(7, d, c, d)                       \
  STROBE_ZIP(a, f, e, f)                       \
  "fadd v0.4s, v0.4s, v6.4s\n"                 \
  "fadd v1.4s, v1.4s, v7.4s\n"                 \
  "fadd v2.4s, v2.4s, v" #a ".4s\n"            \
  "fadd v3.4s, v3.4s, v" #b ".4s\n"            \
  "fadd v4.4s, v4.4s, v" #d ".4s\n"            \
  "fadd v5.4s, v5.4s, v" #f ".4s\n"            \
  STROBE_STORE_ROWS
#define STROBE_ADD                         \
  STROBE_ADD_PAIR(8, 12, 16, 20, 24, 28)   \
  STROBE_ADD_PAIR(9, 13, 17, 21, 25, 29)   \
  STROBE_ADD_PAIR(10, 14, 18, 22, 26, 30)  \
  STROBE_ADD_PAIR(11, 15, 19, 23, 27, 31)

#define STROBE_FIRST_OPERANDS(group)  \
  STROBE_LOAD_PAIR(0, 1, x, 0)        \
  STROBE_LOAD_PAIR(2, 3, x, 32)       \
  STROBE_LOAD_PAIR(4, 5, y, 0)        \
  STROBE_LOAD_PAIR(6, 7, y, group)

// The last step stands by itself, for nothing is loaded ahead in it: that costs less than to ask in
// every step.
#define STROBE_TILE_8X12(x_step, y_step, STEP, LAST_STEP, LEAVE)       \
  __asm__ volatile(                                                    \
    STROBE_NEON_ZERO_TILE                                              \
    STROBE_FIRST_OPERANDS(32)                                          \
    "subs %[steps], %[steps], #1\n"                                    \
    "b.eq 2f\n"                                                        \
    "1:\n"                                                             \
    STEP                                                               \
    "add %[x], %[x], #" #x_step "\n"                                   \
    "add %[y], %[y], #" #y_step "\n"                                   \
    "subs %[steps], %[steps], #1\n"                                    \
    "b.ne 1b\n"                                                        \
    "2:\n"                                                             \
    LAST_STEP                                                          \
    LEAVE                                                              \
    : [steps] "+&r"(steps), [x] "+&r"(x), [y] "+&r"(y), [c] "+&r"(c)   \
    :                                                                  \
    : "cc", "memory", STROBE_NEON_REGISTERS)

// The product of one term of either side, y's at `here`; then come the x and the y at `next_x` and
// `next_y`, or nothing.
#define STROBE_TERM(here, next_x, next_y)                                           \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD_PAIR(4, 5, y, (here) + 64),             \
                 STROBE_LOAD_PAIR(6, 7, y, (next_y) + 32),                          \
                 STROBE_LOAD_PAIR(0, 1, x, next_x), STROBE_LOAD_PAIR(2, 3, x, (next_x) + 32), \
                 STROBE_LOAD_PAIR(4, 5, y, next_y))
#define STROBE_LAST_TERM(here) \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD_PAIR(4, 5, y, (here) + 64), , , , )

// Of two terms: high x * high y and low x * high y; then, if there are four products, low x * low
// y; and at last high x * low y.
#define STROBE_BOTH_X(next_x)  \
  STROBE_TERM(0, 64, 0)        \
  STROBE_TERM(0, next_x, 96)

// Two keys of c, from the accumulators of one y pair.
#define STROBE_ADD_KEYS(a, b, c, d)       \
  "add %[x], %[c], %[stride]\n"           \
  "ldp q0, q1, [%[c]]\n"                  \
  "ldp q2, q3, [%[x]]\n"                  \
  STROBE_ZIP(4, 6, a, b)                  \
  STROBE_ZIP(5, 7, c, d)                  \
  "fadd v0.4s, v0.4s, v4.4s\n"            \
  "fadd v1.4s, v1.4s, v5.4s\n"            \
  "fadd v2.4s, v2.4s, v6.4s\n"            \
  "fadd v3.4s, v3.4s, v7.4s\n"            \
  "stp q0, q1, [%[c]]\n"                  \
  "stp q2, q3, [%[x]]\n"                  \
  "add %[c], %[x], %[stride]\n"
#define STROBE_ADD_GROUPS          \
  STROBE_ADD_KEYS(8, 9, 10, 11)    \
  STROBE_ADD_KEYS(12, 13, 14, 15)  \
  "cmp %[groups], #2\n"            \
  "b.lt 3f\n"                      \
  STROBE_ADD_KEYS(16, 17, 18, 19)  \
  STROBE_ADD_KEYS(20, 21, 22, 23)  \
  "b.eq 3f\n"                      \
  STROBE_ADD_KEYS(24, 25, 26, 27)  \
  STROBE_ADD_KEYS(28, 29, 30, 31)  \
  "3:\n"

// Three steps are one panel. The last panel stands by itself.
#define STROBE_TILE_12X8(x_step, group, PANEL, LAST_PANEL)                     \
  __asm__ volatile(                                                            \
    STROBE_NEON_ZERO_TILE                                                      \
    STROBE_FIRST_OPERANDS(group)                                               \
    "subs %[panels], %[panels], #1\n"                                          \
    "b.eq 2f\n"                                                                \
    "1:\n"                                                                     \
    "add %[next_y], %[y], %[panel]\n"                                          \
    PANEL                                                                      \
    "add %[x], %[x], #" #x_step "\n"                                           \
    "mov %[y], %[next_y]\n"                                                    \
    "subs %[panels], %[panels], #1\n"                                          \
    "b.ne 1b\n"                                                                \
    "2:\n"                                                                     \
    LAST_PANEL                                                                 \
    STROBE_ADD_GROUPS                                                          \
    : [panels] "+&r"(panels), [x] "+&r"(x), [y] "+&r"(y), [c] "+&r"(c),        \
      [next_y] "=&r"(next_y)                                                   \
    : [panel] "r"(panel_bytes), [stride] "r"(row_bytes), [groups] "r"(groups)  \
    : "cc", "memory", STROBE_NEON_REGISTERS)

// As STROBE_TERM, with the pairs of y, which are keys, a `group` apart, and the next of `from_y`.
#define STROBE_KEYS(group, here, next_x, from_y, next_y)                            \
  STROBE_PRODUCT(STROBE_ROWS_Y, STROBE_LOAD_PAIR(4, 5, y, (here) + 2 * (group)),    \
                 STROBE_LOAD_PAIR(6, 7, from_y, (next_y) + (group)),                \
                 STROBE_LOAD_PAIR(0, 1, x, next_x), STROBE_LOAD_PAIR(2, 3, x, (next_x) + 32), \
                 STROBE_LOAD_PAIR(4, 5, from_y, next_y))
#define STROBE_LAST_KEYS(group, here) \
  STROBE_PRODUCT(STROBE_ROWS_Y, STROBE_LOAD_PAIR(4, 5, y, (here) + 2 * (group)), , , , )

#define STROBE_PANEL_ONE_TERM(LAST)  \
  STROBE_KEYS(96, 0, 64, y, 32)      \
  STROBE_KEYS(96, 32, 128, y, 64)    \
  LAST
#define STROBE_PANEL_TWO_TERMS(LAST)     \
  STROBE_KEYS(192, 0, 64, y, 0)          \
  STROBE_KEYS(192, 0, 0, y, 32)          \
  STROBE_KEYS(192, 32, 128, y, 64)       \
  STROBE_KEYS(192, 64, 192, y, 64)       \
  STROBE_KEYS(192, 64, 128, y, 96)       \
  STROBE_KEYS(192, 96, 256, y, 128)      \
  STROBE_KEYS(192, 128, 320, y, 128)     \
  STROBE_KEYS(192, 128, 256, y, 160)     \
  LAST
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// c[8][12] of rows x [steps][terms][8][4] and rows y [steps][terms][12][4]. Of two terms, what
/// replaces c has all four products, and what is added has three, without that of the low terms.
/// steps >= 1.
template <int terms, Into into>
inline void multiply_8x12(std::int64_t steps, const char* x, const char* y, float* c) {
  static_assert(terms == 1 || terms == 2);
  if constexpr (terms == 1 && into == Into::replace) {
    STROBE_TILE_8X12(64, 96, STROBE_TERM(0, 64, 96), STROBE_LAST_TERM(0), STROBE_REPLACE);
  } else if constexpr (terms == 1) {
    STROBE_TILE_8X12(64, 96, STROBE_TERM(0, 64, 96), STROBE_LAST_TERM(0), STROBE_ADD);
  } else if constexpr (into == Into::replace) {
    STROBE_TILE_8X12(128, 192, STROBE_BOTH_X(64) STROBE_TERM(96, 0, 96) STROBE_TERM(96, 128, 192),
                     STROBE_BOTH_X(64) STROBE_TERM(96, 0, 96) STROBE_LAST_TERM(96), STROBE_REPLACE);
  } else {
    STROBE_TILE_8X12(128, 192, STROBE_BOTH_X(0) STROBE_TERM(96, 128, 192),
                     STROBE_BOTH_X(0) STROBE_LAST_TERM(96), STROBE_ADD);
  }
}

/// c[4 * groups][8] += of columns x [panels][3][terms][8][4] and keys y [3][3][terms][4][4], the
/// groups of four keys first and the panels of y panel_bytes apart. Three groups are read, up to
/// three are stored. Of two terms it is three products. panels >= 1.
template <int terms>
inline void multiply_12x8(std::int64_t panels, const char* x, const char* y,
                          std::int64_t panel_bytes, std::int64_t groups, float* c,
                          std::int64_t row_bytes) {
  static_assert(terms == 1 || terms == 2);
  const char* next_y;
  if constexpr (terms == 1) {
    STROBE_TILE_12X8(192, 96, STROBE_PANEL_ONE_TERM(STROBE_KEYS(96, 64, 192, next_y, 0)),
                     STROBE_PANEL_ONE_TERM(STROBE_LAST_KEYS(96, 64)));
  } else {
    STROBE_TILE_12X8(384, 192, STROBE_PANEL_TWO_TERMS(STROBE_KEYS(192, 160, 384, next_y, 0)),
                     STROBE_PANEL_TWO_TERMS(STROBE_LAST_KEYS(192, 160)));
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#undef STROBE_LOAD_PAIR
#undef STROBE_ROWS_X
#undef STROBE_ROWS_Y
#undef STROBE_FOUR
#undef STROBE_PRODUCT
#undef STROBE_ZIP
#undef STROBE_STORE_ROWS
#undef STROBE_REPLACE_PAIR
#undef STROBE_REPLACE
#undef STROBE_ADD_PAIR
#undef STROBE_ADD
#undef STROBE_FIRST_OPERANDS
#undef STROBE_TILE_8X12
#undef STROBE_TERM
#undef STROBE_LAST_TERM
#undef STROBE_BOTH_X
#undef STROBE_ADD_KEYS
#undef STROBE_ADD_GROUPS
#undef STROBE_TILE_12X8
#undef STROBE_KEYS
#undef STROBE_LAST_KEYS
#undef STROBE_PANEL_ONE_TERM
#undef STROBE_PANEL_TWO_TERMS
