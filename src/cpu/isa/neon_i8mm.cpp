// One instruction multiplies 2×8 by 8×2 int8 into 2×2 int32.
#define STROBE_ISA neon_i8mm
#include "cpu/engine/neon_peak.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct Multiply {
  using Sum = int32x4_t;
  static constexpr int kProducts = 2 * 8 * 2;
  static Sum zero() { return vdupq_n_s32(0); }
  static int8x16_t operand() { return vdupq_n_s8(1); }
  static Sum add(Sum sum, int8x16_t x) { return vmmlaq_s32(sum, x, x); }
};

}  // namespace

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  return register_multiply_loop<Multiply>(iterations);
}

}  // namespace strobe::cpu::STROBE_ISA
