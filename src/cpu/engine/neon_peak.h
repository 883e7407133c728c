#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Multiplies and adds in registers again and again. `Multiply` has the type `Sum` of an
/// accumulator, its `zero`, the `operand` of both sides, `add`, one instruction, and `kProducts` of
/// that. Returns the operations done, two for each product.
template <class Multiply>
inline double register_multiply_loop(std::int64_t iterations) {
  constexpr int kAccumulators = 24;  // fewer leave the unit waiting
  typename Multiply::Sum sums[kAccumulators];
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) {
    sums[k] = Multiply::zero();
    __asm__("" : "+w"(sums[k]));  // for all the compiler knows, each is different
  }
  // Loaded, as those of a kernel are: with no operand among the last dozen that were loaded, a
  // Neoverse V1 multiplies at half its rate.
  const auto made = Multiply::operand();
  auto ones = made;
  __asm__ volatile("ldr %q0, %1" : "=w"(ones) : "m"(made));
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kAccumulators; ++k) sums[k] = Multiply::add(sums[k], ones);
  }
  // Somebody reads them, one by one: with an address GCC 12 would keep them in memory.
#pragma GCC unroll 24
  for (int k = 0; k < kAccumulators; ++k) __asm__ volatile("" : : "w"(sums[k]));
  return 2.0 * Multiply::kProducts * kAccumulators * static_cast<double>(iterations);
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
