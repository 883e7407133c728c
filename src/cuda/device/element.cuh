#pragma once
// The number formats of operands in memory.

#include "device/ptx/math.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

struct Bf16 {
  using Storage = unsigned short;

  STROBE_DEVICE static Word pack(float low, float high) { return ptx::pack_bf16(low, high); }
  /// Is 0 as long as all pairs are finite, if it starts from 0 and goes on from what it was before.
  STROBE_DEVICE static Word probe(Word pair, Word before) { return ptx::probe_bf16(pair, before); }
  STROBE_DEVICE static float widen(Storage x) {
    return __uint_as_float(static_cast<Word>(x) << 16);
  }
  STROBE_DEVICE static Storage narrow(float x) { return static_cast<Storage>(pack(x, 0.0F)); }

  /// Two neighbours in a row of shared memory.
  STROBE_DEVICE static void store_pair(Word address, float first, float second) {
    ptx::store_word(address, pack(first, second));
  }
};

struct Fp16 {
  using Storage = unsigned short;

  STROBE_DEVICE static Word pack(float low, float high) { return ptx::pack_fp16(low, high); }
  STROBE_DEVICE static Word probe(Word pair, Word before) { return ptx::probe_fp16(pair, before); }
  STROBE_DEVICE static float widen(Storage x) { return ptx::widen_fp16(x); }
  STROBE_DEVICE static Storage narrow(float x) { return static_cast<Storage>(pack(x, 0.0F)); }

  STROBE_DEVICE static void store_pair(Word address, float first, float second) {
    ptx::store_word(address, pack(first, second));
  }
};

struct Fp32 {
  using Storage = float;

  STROBE_DEVICE static float widen(Storage x) { return x; }
  STROBE_DEVICE static Storage narrow(float x) { return x; }

  STROBE_DEVICE static void store_pair(Word address, float first, float second) {
    ptx::store_words(address, __float_as_uint(first), __float_as_uint(second));
  }
};

}  // namespace strobe::cuda
