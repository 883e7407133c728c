#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::avx512_vnni {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 24;
  __m512i sums[kAccumulators];
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = _mm512_setzero_si512();
    __asm__("" : "+v"(sums[k]));  // for all the compiler knows, each is different
  }
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kAccumulators; ++k) sums[k] = _mm512_dpbusd_epi32(sums[k], ones, ones);
  }
  // Somebody reads them, one by one: with an address GCC 12 would keep them in memory.
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) __asm__ volatile("" : : "v"(sums[k]));
  return 2.0 * 64 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::avx512_vnni
