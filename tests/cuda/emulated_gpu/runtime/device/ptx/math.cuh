#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline float exp2(float x) {
  return ::exp2f(x);
}
inline float log2(float x) {
  return ::log2f(x);
}
inline float reciprocal(float x) {
  return 1 / x;
}

inline Word round_to_tf32(float x) {
  const Word word = __float_as_uint(x);
  return is_finite(x) ? (word + 0x1000U) & 0xFFFFE000U : word;
}

inline Word to_bf16(float x) {
  const Word word = __float_as_uint(x);
  return x != x ? 0x7FFFU : (word + 0x7FFF + (word >> 16 & 1)) >> 16;
}
#ifdef __aarch64__
using Fp16 = __fp16;  // the only name that GCC 12 has for it there
#else
using Fp16 = _Float16;
#endif
inline Word to_fp16(float x) {
  return emulated::bits<std::uint16_t>(static_cast<Fp16>(x));
}
inline Word pack_bf16(float low, float high) {
  return to_bf16(low) | to_bf16(high) << 16;
}
inline Word pack_fp16(float low, float high) {
  return to_fp16(low) | to_fp16(high) << 16;
}

inline Word probe_pair(Word pair, Word probe, Word exponent) {
  for (const int shift : {0, 16}) {
    if ((pair >> shift & exponent) == exponent) probe |= 0x7FFFU << shift;
  }
  return probe;
}
inline Word probe_bf16(Word pair, Word probe) {
  return probe_pair(pair, probe, 0x7F80U);
}
inline Word probe_fp16(Word pair, Word probe) {
  return probe_pair(pair, probe, 0x7C00U);
}

inline float widen_fp16(unsigned short x) {
  return static_cast<float>(emulated::bits<Fp16>(x));
}

}  // namespace strobe::cuda::ptx
