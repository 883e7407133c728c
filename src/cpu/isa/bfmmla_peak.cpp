// One instruction multiplies 2×4 by 4×2 bf16 into 2×2 fp32.
#define STROBE_ISA bfmmla_peak
#include "cpu/engine/neon_peak.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct Multiply {
  using Sum = float32x4_t;
  static constexpr int kProducts = 2 * 4 * 2;
  static Sum zero() { return vdupq_n_f32(0); }
  static bfloat16x8_t operand() {
    std::uint16_t one = 0x3f80;
    __asm__("" : "+r"(one));  // as a constant, GCC 12 writes it in a way that needs fp16 arithmetic
    return vreinterpretq_bf16_u16(vdupq_n_u16(one));
  }
  static Sum add(Sum sum, bfloat16x8_t x) { return vbfmmlaq_f32(sum, x, x); }
};

}  // namespace

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  return register_multiply_loop<Multiply>(iterations);
}

}  // namespace strobe::cpu::STROBE_ISA
