#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// 2^x; 0 for minus infinity.
STROBE_DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

STROBE_DEVICE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

STROBE_DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Rounded to nearest, ties away from zero; the low 13 bits are 0. The conversion leaves them as
/// they fall, for a tensor core ignores them.
STROBE_DEVICE Word round_to_tf32(float x) {
  Word y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y & 0xFFFFE000U;
}

/// Two bf16, `low` in the low half.
STROBE_DEVICE Word pack_bf16(float low, float high) {
  Word y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

STROBE_DEVICE Word pack_fp16(float low, float high) {
  Word y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// A probe of numbers, two and two: 0 at first, and no longer once a pair is not finite.

STROBE_DEVICE Word probe_bf16(Word pair, Word probe) {
  Word y;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(pair), "r"(0), "r"(probe));
  return y;
}

STROBE_DEVICE Word probe_fp16(Word pair, Word probe) {
  Word y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(pair), "r"(0), "r"(probe));
  return y;
}

STROBE_DEVICE float widen_fp16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}

}  // namespace strobe::cuda::ptx
