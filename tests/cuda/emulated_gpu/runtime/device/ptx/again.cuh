#pragma once

namespace strobe::cuda::ptx {

inline int again(int x) {
  return x;
}

template <class T>
const T& again(const T& x) {
  return x;
}

}  // namespace strobe::cuda::ptx
