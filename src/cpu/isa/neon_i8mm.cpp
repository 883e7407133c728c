#include <arm_neon.h>

#include <cstdint>

namespace strobe::cpu::neon_i8mm {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 24;
  int32x4_t sums[kAccumulators];
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = vdupq_n_s32(0);
    __asm__("" : "+w"(sums[k]));  // for all the compiler knows, each is different
  }
  const int8x16_t ones = vdupq_n_s8(1);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kAccumulators; ++k)
      sums[k] = vmmlaq_s32(sums[k], ones, ones);  // 2×8 by 8×2
  }
  // Somebody reads them, one by one: with an address GCC 12 would keep them in memory.
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) __asm__ volatile("" : : "w"(sums[k]));
  return 2.0 * 2 * 8 * 2 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::neon_i8mm
