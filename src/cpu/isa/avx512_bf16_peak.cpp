#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::avx512_bf16_peak {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 24;
  __m512 sums[kAccumulators];
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = _mm512_setzero_ps();
    __asm__("" : "+v"(sums[k]));  // for all the compiler knows, each is different
  }
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kAccumulators; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], ones, ones);
  }
  __asm__ volatile("" : : "r"(sums) : "memory");  // somebody reads it
  return 2.0 * 32 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::avx512_bf16_peak
