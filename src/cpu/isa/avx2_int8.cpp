// Without an instruction for it: bytes in pairs to 16 bits, those in pairs to 32.
#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::avx2_int8 {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 8;
  __m256i sums[kAccumulators];
#pragma GCC unroll 8
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = _mm256_setzero_si256();
    __asm__("" : "+x"(sums[k]));  // for all the compiler knows, each is different
  }
  __m256i bytes = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < kAccumulators; ++k) {
      __asm__("" : "+x"(bytes));  // multiplied anew each time
      const __m256i pairs = _mm256_maddubs_epi16(bytes, bytes);
      sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(pairs, ones));
    }
  }
  // Somebody reads them, one by one: with an address GCC 12 would keep them in memory.
#pragma GCC unroll 8
  for (int k = 0; k < kAccumulators; ++k) __asm__ volatile("" : : "x"(sums[k]));
  return 2.0 * 32 * kAccumulators * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::avx2_int8
