#pragma once

#include <chrono>

namespace strobe::cuda::ptx {

inline long long nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace strobe::cuda::ptx
