#pragma once

namespace strobe::cuda::ptx {

inline int again(int x) {
  return x;
}

}  // namespace strobe::cuda::ptx
