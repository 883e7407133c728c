#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// The same number, which the compiler cannot know: what is derived from it is computed here, where
/// it would otherwise be computed once, far ahead, and take up registers until it is needed.
STROBE_DEVICE Word again(Word x) {
  Word y;
  asm volatile("mov.b32 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

STROBE_DEVICE int again(int x) {
  return static_cast<int>(again(static_cast<Word>(x)));
}

template <class T>
STROBE_DEVICE const T& again(const T& x) {
  const T* y;
  asm volatile("mov.b64 %0, %1;" : "=l"(y) : "l"(&x));
  return *y;
}

}  // namespace strobe::cuda::ptx
