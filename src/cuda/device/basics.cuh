#pragma once
// The vocabulary of device code. What contains no PTX and no warp functions compiles for the host
// as well, so that it can be tested without a GPU.

#ifdef __CUDACC__
#define STROBE_DEVICE __device__ __forceinline__
#else
#define STROBE_DEVICE inline
#endif

namespace strobe::cuda {

/// Offsets and products of sizes.
using Wide = long long;
using Word = unsigned;

constexpr float kLog2E = 1.44269504088896340736F;
constexpr float kLn2 = 0.693147180559945309417F;

template <class T>
STROBE_DEVICE constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}

template <class T>
STROBE_DEVICE constexpr T larger(T a, T b) {
  return a > b ? a : b;
}

template <class T>
STROBE_DEVICE constexpr T ceil_div(T value, T step) {
  return (value + step - 1) / step;
}

template <class T>
STROBE_DEVICE constexpr T round_up(T value, T step) {
  return ceil_div(value, step) * step;
}

template <bool first, class First, class Second>
struct Choice {
  using Type = First;
};
template <class First, class Second>
struct Choice<false, First, Second> {
  using Type = Second;
};
/// One of two types.
template <bool first, class First, class Second>
using Either = typename Choice<first, First, Second>::Type;

#ifdef __CUDACC__
STROBE_DEVICE float minus_infinity() {
  return __int_as_float(0xFF800000);
}

STROBE_DEVICE bool is_finite(float x) {
  return (__float_as_uint(x) & 0x7F800000U) != 0x7F800000U;
}

STROBE_DEVICE int lane_index() {
  return static_cast<int>(threadIdx.x % 32);
}

constexpr Word kAllLanes = 0xFFFFFFFFU;

/// What is the same in all lanes, and from here on known to be so by the compiler. Where a loop or
/// a branch goes by it in which lanes talk to each other, all that comes after depends on that: if
/// lanes might leave it at different times, nothing that follows is kept in registers that they
/// share.
STROBE_DEVICE int uniform(int x) {
  return __shfl_sync(kAllLanes, x, 0);
}

/// Likewise, within a loop that lanes are already taken to leave at different times: the result of
/// a reduction lies in a register that they share.
STROBE_DEVICE Word uniform_by_reduction(Word x) {
  return __reduce_or_sync(kAllLanes, x);
}

STROBE_DEVICE int warp_index() {
  return uniform(static_cast<int>(threadIdx.x / 32));
}
#endif

}  // namespace strobe::cuda
