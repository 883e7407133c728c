// Plain C++, as fast as the compiler makes it with what every machine of the architecture has.
#include <cstdint>

namespace strobe::cpu::scalar_int8 {

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  constexpr int kElements = 256;
  std::int8_t left[kElements];
  std::int8_t right[kElements];
  for (int k = 0; k < kElements; ++k) left[k] = right[k] = 1;
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < iterations / 8; ++i) {
    __asm__ volatile("" : : "r"(left), "r"(right) : "memory");  // multiplied anew each time
    for (int k = 0; k < kElements; ++k) sum += left[k] * right[k];
  }
  __asm__ volatile("" : : "r"(sum));  // somebody reads it
  return 2.0 * kElements * static_cast<double>(iterations / 8);
}

}  // namespace strobe::cpu::scalar_int8
