#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

template <int count>
void add_to(float* to, const float (&values)[count]) {
  if (reinterpret_cast<std::uintptr_t>(to) % (count * sizeof(float)) != 0) {
    emulated::Block::current->fail("numbers are added to an address between their alignment");
  }
  for (int i = 0; i < count; ++i) to[i] += values[i];
}

inline void add_pair(float* to, float first, float second) {
  add_to<2>(to, {first, second});
}

inline void add_four(float* to, float first, float second, float third, float fourth) {
  add_to<4>(to, {first, second, third, fourth});
}

}  // namespace strobe::cuda::ptx
