#include <arm_neon.h>

#include <cstdint>

namespace strobe::cpu::bfmmla_peak {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 24;  // fewer leave the unit waiting
  float32x4_t sums[kAccumulators];
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = vdupq_n_f32(0);
    __asm__("" : "+w"(sums[k]));  // for all the compiler knows, each is different
  }
  std::uint16_t one = 0x3f80;
  __asm__("" : "+r"(one));  // as a constant, GCC 12 writes it in a way that needs fp16 arithmetic
  const bfloat16x8_t ones = vreinterpretq_bf16_u16(vdupq_n_u16(one));
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kAccumulators; ++k)
      sums[k] = vbfmmlaq_f32(sums[k], ones, ones);  // 2×4 by 4×2
  }
  __asm__ volatile("" : : "r"(sums) : "memory");  // somebody reads it
  return 2.0 * 2 * 4 * 2 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::bfmmla_peak
