#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::avx_vnni {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 12;
  __m256i sums[kAccumulators];
#pragma GCC unroll 12
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = _mm256_setzero_si256();
    __asm__("" : "+x"(sums[k]));  // for all the compiler knows, each is different
  }
  const __m256i ones = _mm256_set1_epi8(1);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kAccumulators; ++k) sums[k] = _mm256_dpbusd_avx_epi32(sums[k], ones, ones);
  }
  // Somebody reads them, one by one: with an address GCC 12 would keep them in memory.
#pragma GCC unroll 12
  for (int k = 0; k < kAccumulators; ++k) __asm__ volatile("" : : "x"(sums[k]));
  return 2.0 * 32 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::avx_vnni
