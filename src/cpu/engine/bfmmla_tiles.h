#pragma once
// The inner loops of BfmmlaEngine. BFMMLA multiplies 2 rows of four bf16 by 2 rows of four and adds
// the 2 x 2 products to four floats. A tile has 4 pairs of rows on its short side (x, 8 rows) and 6
// on its long side (y, 12 rows): 24 accumulators, as many as four pipes with a latency of five
// cycles need, and 8 registers for operands.
//
// They are assembly from the first load to the last store, because compilers spill: GCC 12 sends an
// accumulator through the stack in every step. Each load stands in front of its use by as much as
// the registers allow; in the last step the loads ahead fetch that step again, so that nothing is
// read behind the end.
//
// Included after a vector type of cpu/simd, in the namespace STROBE_ISA names.

#include <cstdint>

#include "cpu/engine/neon_tile.h"

// One instruction or macro a line:
// clang-format off
#define STROBE_LOAD(r, base, offset) "ldr q" #r ", [%[" #base "], #" #offset "]\n"
#define STROBE_LOAD_PAIR(r, s, base, offset) "ldp q" #r ", q" #s ", [%[" #base "], #" #offset "]\n"

// Operands: y in v0 to v5, x in v6 and v7 by turns. Accumulators: v8 + 6 x + y.
#define STROBE_ROWS_X(c, x, y) "bfmmla v" #c ".4s, v" #x ".8h, v" #y ".8h\n"
#define STROBE_ROWS_Y(c, x, y) "bfmmla v" #c ".4s, v" #y ".8h, v" #x ".8h\n"
#define STROBE_SIX(MUL, x, c0, c1, c2, c3, c4, c5)                                     \
  MUL(c0, x, 0) MUL(c1, x, 1) MUL(c2, x, 2) MUL(c3, x, 3) MUL(c4, x, 4) MUL(c5, x, 5)

// One product of the whole tile. x0 and x1 are loaded; x2, x3 and then the operands of what comes
// next are loaded as soon as a register is free.
#define STROBE_PRODUCT(MUL, x2, x3, next_x0, next_x1, next_y0, next_y2, next_y4)  \
  STROBE_SIX(MUL, 6, 8, 9, 10, 11, 12, 13)                                        \
  x2                                                                              \
  STROBE_SIX(MUL, 7, 14, 15, 16, 17, 18, 19)                                      \
  x3                                                                              \
  STROBE_SIX(MUL, 6, 20, 21, 22, 23, 24, 25)                                      \
  next_x0                                                                         \
  MUL(26, 7, 0) MUL(27, 7, 1)                                                     \
  next_y0                                                                         \
  MUL(28, 7, 2) MUL(29, 7, 3)                                                     \
  next_y2                                                                         \
  MUL(30, 7, 4) MUL(31, 7, 5)                                                     \
  next_y4                                                                         \
  next_x1

#define STROBE_ZERO_TILE             \
  STROBE_NEON_ZERO4(8, 9, 10, 11)    \
  STROBE_NEON_ZERO4(12, 13, 14, 15)  \
  STROBE_NEON_ZERO4(16, 17, 18, 19)  \
  STROBE_NEON_ZERO4(20, 21, 22, 23)  \
  STROBE_NEON_ZERO4(24, 25, 26, 27)  \
  STROBE_NEON_ZERO4(28, 29, 30, 31)

// An accumulator is two rows of two: {r0 c0, r0 c1, r1 c0, r1 c1}. The low halves of two neighbours
// are four columns of the first row, the high halves of the second.

// Rows 2i and 2i + 1 of c from the accumulators of x pair i. Storing low halves needs no shuffle.
#define STROBE_REPLACE_PAIR(a, b, c, d, e, f)  \
  "zip2 v0.2d, v" #a ".2d, v" #b ".2d\n"       \
  "zip2 v1.2d, v" #c ".2d, v" #d ".2d\n"       \
  "zip2 v2.2d, v" #e ".2d, v" #f ".2d\n"       \
  "stp d" #a ", d" #b ", [%[c]]\n"             \
  "stp d" #c ", d" #d ", [%[c], #16]\n"        \
  "stp d" #e ", d" #f ", [%[c], #32]\n"        \
  "stp q0, q1, [%[c], #48]\n"                  \
  "str q2, [%[c], #80]\n"                      \
  "add %[c], %[c], #96\n"
#define STROBE_REPLACE                         \
  STROBE_REPLACE_PAIR(8, 9, 10, 11, 12, 13)    \
  STROBE_REPLACE_PAIR(14, 15, 16, 17, 18, 19)  \
  STROBE_REPLACE_PAIR(20, 21, 22, 23, 24, 25)  \
  STROBE_REPLACE_PAIR(26, 27, 28, 29, 30, 31)

#define STROBE_ADD_PAIR(a, b, c, d, e, f)      \
  "ldp q0, q1, [%[c]]\n"                       \
  "ldp q2, q3, [%[c], #32]\n"                  \
  "ldp q4, q5, [%[c], #64]\n"                  \
  "zip1 v6.2d, v" #a ".2d, v" #b ".2d\n"       \
  "zip2 v" #b ".2d, v" #a ".2d, v" #b ".2d\n"  \
  "zip1 v7.2d, v" #c ".2d, v" #d ".2d\n"       \
  "zip2 v" #d ".2d, v" #c ".2d, v" #d ".2d\n"  \
  "zip1 v" #a ".2d, v" #e ".2d, v" #f ".2d\n"  \
  "zip2 v" #f ".2d, v" #e ".2d, v" #f ".2d\n"  \
  "fadd v0.4s, v0.4s, v6.4s\n"                 \
  "fadd v1.4s, v1.4s, v7.4s\n"                 \
  "fadd v2.4s, v2.4s, v" #a ".4s\n"            \
  "fadd v3.4s, v3.4s, v" #b ".4s\n"            \
  "fadd v4.4s, v4.4s, v" #d ".4s\n"            \
  "fadd v5.4s, v5.4s, v" #f ".4s\n"            \
  "stp q0, q1, [%[c]]\n"                       \
  "stp q2, q3, [%[c], #32]\n"                  \
  "stp q4, q5, [%[c], #64]\n"                  \
  "add %[c], %[c], #96\n"
#define STROBE_ADD                         \
  STROBE_ADD_PAIR(8, 9, 10, 11, 12, 13)    \
  STROBE_ADD_PAIR(14, 15, 16, 17, 18, 19)  \
  STROBE_ADD_PAIR(20, 21, 22, 23, 24, 25)  \
  STROBE_ADD_PAIR(26, 27, 28, 29, 30, 31)

#define STROBE_FIRST_OPERANDS    \
  STROBE_LOAD_PAIR(0, 1, y, 0)   \
  STROBE_LOAD_PAIR(2, 3, y, 32)  \
  STROBE_LOAD_PAIR(4, 5, y, 64)  \
  STROBE_LOAD_PAIR(6, 7, x, 0)

// `MORE` is the rest of a step after the flags say whether it is the last one.
#define STROBE_TILE_8X12(x_step, y_step, MORE, LEAVE)                  \
  __asm__ volatile(                                                    \
    STROBE_ZERO_TILE                                                   \
    STROBE_FIRST_OPERANDS                                              \
    "1:\n"                                                             \
    "add %[next_x], %[x], #" #x_step "\n"                              \
    "add %[next_y], %[y], #" #y_step "\n"                              \
    "subs %[steps], %[steps], #1\n"                                    \
    "csel %[next_x], %[next_x], %[x], ne\n"                            \
    "csel %[next_y], %[next_y], %[y], ne\n"                            \
    MORE                                                               \
    "mov %[x], %[next_x]\n"                                            \
    "mov %[y], %[next_y]\n"                                            \
    "b.ne 1b\n"                                                        \
    LEAVE                                                              \
    : [steps] "+&r"(steps), [x] "+&r"(x), [y] "+&r"(y), [c] "+&r"(c),  \
      [next_x] "=&r"(next_x), [next_y] "=&r"(next_y)                   \
    :                                                                  \
    : "cc", "memory", STROBE_NEON_REGISTERS)

#define STROBE_ONE_PRODUCT                                                              \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD(6, x, 32), STROBE_LOAD(7, x, 48),           \
                 STROBE_LOAD(6, next_x, 0), STROBE_LOAD(7, next_x, 16),                 \
                 STROBE_LOAD_PAIR(0, 1, next_y, 0), STROBE_LOAD_PAIR(2, 3, next_y, 32), \
                 STROBE_LOAD_PAIR(4, 5, next_y, 64))

// high x * high y and low x * high y; after them come the x at `next` and low y.
#define STROBE_BOTH_X(next)                                                     \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD(6, x, 32), STROBE_LOAD(7, x, 48),   \
                 STROBE_LOAD(6, x, 64), STROBE_LOAD(7, x, 80), , , )            \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD(6, x, 96), STROBE_LOAD(7, x, 112),  \
                 STROBE_LOAD(6, x, next), STROBE_LOAD(7, x, (next) + 16),         \
                 STROBE_LOAD_PAIR(0, 1, y, 96), STROBE_LOAD_PAIR(2, 3, y, 128), \
                 STROBE_LOAD_PAIR(4, 5, y, 160))
// With high x * low y, and before it with low x * low y.
#define STROBE_THREE_PRODUCTS  \
  STROBE_BOTH_X(0)             \
  STROBE_ONE_PRODUCT
#define STROBE_FOUR_PRODUCTS                                                    \
  STROBE_BOTH_X(64)                                                             \
  STROBE_PRODUCT(STROBE_ROWS_X, STROBE_LOAD(6, x, 96), STROBE_LOAD(7, x, 112),  \
                 STROBE_LOAD(6, x, 0), STROBE_LOAD(7, x, 16), , , )             \
  STROBE_ONE_PRODUCT

// Two keys of c, from the accumulators of one y pair.
#define STROBE_ADD_KEYS(a, b, c, d)       \
  "add %[x], %[c], %[stride]\n"           \
  "ldp q0, q1, [%[c]]\n"                  \
  "ldp q2, q3, [%[x]]\n"                  \
  "zip1 v4.2d, v" #a ".2d, v" #b ".2d\n"  \
  "zip1 v5.2d, v" #c ".2d, v" #d ".2d\n"  \
  "zip2 v6.2d, v" #a ".2d, v" #b ".2d\n"  \
  "zip2 v7.2d, v" #c ".2d, v" #d ".2d\n"  \
  "fadd v0.4s, v0.4s, v4.4s\n"            \
  "fadd v1.4s, v1.4s, v5.4s\n"            \
  "fadd v2.4s, v2.4s, v6.4s\n"            \
  "fadd v3.4s, v3.4s, v7.4s\n"            \
  "stp q0, q1, [%[c]]\n"                  \
  "stp q2, q3, [%[x]]\n"                  \
  "add %[c], %[x], %[stride]\n"
#define STROBE_ADD_GROUPS          \
  STROBE_ADD_KEYS(8, 14, 20, 26)   \
  STROBE_ADD_KEYS(9, 15, 21, 27)   \
  "cmp %[groups], #2\n"            \
  "b.lt 2f\n"                      \
  STROBE_ADD_KEYS(10, 16, 22, 28)  \
  STROBE_ADD_KEYS(11, 17, 23, 29)  \
  "b.eq 2f\n"                      \
  STROBE_ADD_KEYS(12, 18, 24, 30)  \
  STROBE_ADD_KEYS(13, 19, 25, 31)  \
  "2:\n"

// Three steps are one panel. y is at the present one, next_y at it or the one after.
#define STROBE_TILE_12X8(x_step, FIRST, MORE)                                  \
  __asm__ volatile(                                                            \
    STROBE_ZERO_TILE                                                           \
    FIRST                                                                      \
    "1:\n"                                                                     \
    "add %[next_x], %[x], #" #x_step "\n"                                      \
    "add %[next_y], %[y], %[panel]\n"                                          \
    "subs %[panels], %[panels], #1\n"                                          \
    "csel %[next_x], %[next_x], %[x], ne\n"                                    \
    "csel %[next_y], %[next_y], %[y], ne\n"                                    \
    MORE                                                                       \
    "mov %[x], %[next_x]\n"                                                    \
    "mov %[y], %[next_y]\n"                                                    \
    "b.ne 1b\n"                                                                \
    STROBE_ADD_GROUPS                                                          \
    : [panels] "+&r"(panels), [x] "+&r"(x), [y] "+&r"(y), [c] "+&r"(c),        \
      [next_x] "=&r"(next_x), [next_y] "=&r"(next_y)                           \
    : [panel] "r"(panel_bytes), [stride] "r"(row_bytes), [groups] "r"(groups)  \
    : "cc", "memory", STROBE_NEON_REGISTERS)

// x of this step at `here`; after it comes the x at `next` of `from_x`, and of `from_y` the y's at
// `y0` and two strides of `group` on.
#define STROBE_KEYS(here, from_x, next, from_y, y0, group)                                       \
  STROBE_PRODUCT(STROBE_ROWS_Y, STROBE_LOAD(6, x, (here) + 32), STROBE_LOAD(7, x, (here) + 48),      \
                 STROBE_LOAD(6, from_x, next), STROBE_LOAD(7, from_x, (next) + 16),                \
                 STROBE_LOAD_PAIR(0, 1, from_y, y0), STROBE_LOAD_PAIR(2, 3, from_y, (y0) + (group)), \
                 STROBE_LOAD_PAIR(4, 5, from_y, (y0) + 2 * (group)))
#define STROBE_KEYS_SAME_Y(here, next)                                                      \
  STROBE_PRODUCT(STROBE_ROWS_Y, STROBE_LOAD(6, x, (here) + 32), STROBE_LOAD(7, x, (here) + 48), \
                 STROBE_LOAD(6, x, next), STROBE_LOAD(7, x, (next) + 16), , , )
#define STROBE_FIRST_KEYS(group)        \
  STROBE_LOAD_PAIR(0, 1, y, 0)          \
  STROBE_LOAD_PAIR(2, 3, y, group)      \
  STROBE_LOAD_PAIR(4, 5, y, 2 * (group))  \
  STROBE_LOAD_PAIR(6, 7, x, 0)

#define STROBE_PANEL_ONE_TERM                 \
  STROBE_KEYS(0, x, 64, y, 32, 96)            \
  STROBE_KEYS(64, x, 128, y, 64, 96)          \
  STROBE_KEYS(128, next_x, 0, next_y, 0, 96)
#define STROBE_PANEL_TWO_TERMS                 \
  STROBE_KEYS_SAME_Y(0, 64)                    \
  STROBE_KEYS(64, x, 0, y, 32, 192)            \
  STROBE_KEYS(0, x, 128, y, 64, 192)           \
  STROBE_KEYS_SAME_Y(128, 192)                 \
  STROBE_KEYS(192, x, 128, y, 96, 192)         \
  STROBE_KEYS(128, x, 256, y, 128, 192)        \
  STROBE_KEYS_SAME_Y(256, 320)                 \
  STROBE_KEYS(320, x, 256, y, 160, 192)        \
  STROBE_KEYS(256, next_x, 0, next_y, 0, 192)
// clang-format on

namespace strobe::cpu::STROBE_ISA {
namespace {

/// c[8][12] of rows x [steps][terms][8][4] and rows y [steps][terms][12][4]. Of two terms, what
/// replaces c has all four products, and what is added has three, without that of the low terms.
/// steps >= 1.
template <int terms, Into into>
inline void multiply_8x12(std::int64_t steps, const char* x, const char* y, float* c) {
  static_assert(terms == 1 || terms == 2);
  const char* next_x;
  const char* next_y;
  if constexpr (terms == 1 && into == Into::replace) {
    STROBE_TILE_8X12(64, 96, STROBE_ONE_PRODUCT, STROBE_REPLACE);
  } else if constexpr (terms == 1) {
    STROBE_TILE_8X12(64, 96, STROBE_ONE_PRODUCT, STROBE_ADD);
  } else if constexpr (into == Into::replace) {
    STROBE_TILE_8X12(128, 192, STROBE_FOUR_PRODUCTS, STROBE_REPLACE);
  } else {
    STROBE_TILE_8X12(128, 192, STROBE_THREE_PRODUCTS, STROBE_ADD);
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
  const char* next_x;
  const char* next_y;
  if constexpr (terms == 1) {
    STROBE_TILE_12X8(192, STROBE_FIRST_KEYS(96), STROBE_PANEL_ONE_TERM);
  } else {
    STROBE_TILE_12X8(384, STROBE_FIRST_KEYS(192), STROBE_PANEL_TWO_TERMS);
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#undef STROBE_LOAD
#undef STROBE_LOAD_PAIR
#undef STROBE_ROWS_X
#undef STROBE_ROWS_Y
#undef STROBE_SIX
#undef STROBE_PRODUCT
#undef STROBE_ZERO_TILE
#undef STROBE_REPLACE_PAIR
#undef STROBE_REPLACE
#undef STROBE_ADD_PAIR
#undef STROBE_ADD
#undef STROBE_FIRST_OPERANDS
#undef STROBE_TILE_8X12
#undef STROBE_ONE_PRODUCT
#undef STROBE_BOTH_X
#undef STROBE_THREE_PRODUCTS
#undef STROBE_FOUR_PRODUCTS
#undef STROBE_ADD_KEYS
#undef STROBE_ADD_GROUPS
#undef STROBE_TILE_12X8
#undef STROBE_KEYS
#undef STROBE_KEYS_SAME_Y
#undef STROBE_FIRST_KEYS
#undef STROBE_PANEL_ONE_TERM
#undef STROBE_PANEL_TWO_TERMS
