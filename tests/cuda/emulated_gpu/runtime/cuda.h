#pragma once
// The words of CUDA C++ that kernels use, as far as they are not behind device/ptx.

#include <cmath>
#include <tuple>
#include <utility>

#include "block.h"

#define __CUDACC__
#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__ static  // a block has the host's thread for itself
#define __grid_constant__
#define __launch_bounds__(...)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

#define threadIdx (emulated::Block::thread->index)
#define blockIdx (emulated::Block::current->index())
#define blockDim (emulated::Block::current->size())
#define gridDim (emulated::Block::current->grid())

namespace emulated {

template <class To, class From>
To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// What lane `lane` showed in an exchange.
template <class T>
T shown(const char (*all)[Warp::kBytes], unsigned lane) {
  T value;
  std::memcpy(&value, all[lane], sizeof value);
  return value;
}

}  // namespace emulated

inline float __uint_as_float(unsigned x) {
  return emulated::bits<float>(x);
}
inline float __int_as_float(unsigned x) {
  return emulated::bits<float>(x);
}
inline unsigned __float_as_uint(float x) {
  return emulated::bits<unsigned>(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}

[[noreturn]] inline void __trap() {
  emulated::Block::current->fail("trap");
}

inline void __syncthreads() {
  emulated::Block::current->synchronize();
}
inline void __syncwarp() {
  emulated::Block::current->exchange(0);
}

template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return emulated::shown<T>(emulated::Block::current->exchange(x), static_cast<unsigned>(lane));
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int distance) {
  const unsigned lane = emulated::Block::thread->lane() ^ static_cast<unsigned>(distance);
  return emulated::shown<T>(emulated::Block::current->exchange(x), lane);
}
inline unsigned __ballot_sync(unsigned, bool x) {
  const auto all = emulated::Block::current->exchange(x);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    votes |= (emulated::shown<bool>(all, lane) ? 1U : 0U) << lane;
  }
  return votes;
}
inline bool __any_sync(unsigned mask, bool x) {
  return __ballot_sync(mask, x) != 0;
}
inline unsigned __reduce_or_sync(unsigned, unsigned x) {
  const auto all = emulated::Block::current->exchange(x);
  unsigned any = 0;
  for (unsigned lane = 0; lane < 32; ++lane) any |= emulated::shown<unsigned>(all, lane);
  return any;
}

template <class T>
T atomicAdd(T* to, T value) {
  const T before = *to;  // blocks run one after the other
  *to += value;
  return before;
}
