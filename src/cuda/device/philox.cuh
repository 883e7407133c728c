#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

struct FourWords {
  Word word[4];
};

/// Philox4x32-10, the same function as strobe::philox.
STROBE_DEVICE FourWords philox(FourWords counter, Word key0, Word key1) {
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ULL * counter.word[0];
    const unsigned long long b = 0xCD9E8D57ULL * counter.word[2];
    counter = {static_cast<Word>(b >> 32) ^ counter.word[1] ^ key0, static_cast<Word>(b),
               static_cast<Word>(a >> 32) ^ counter.word[3] ^ key1, static_cast<Word>(a)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

}  // namespace strobe::cuda
