#pragma once

#include "device/ptx/math.cuh"

namespace strobe::cuda::ptx {

/// The words of both operands lie as the real header says. `widen(word, i)` is element i of
/// `per_word`.
template <int per_word, class Widen>
void mma(float (&sum)[4], const Word (&left)[4], const Word (&right)[2], Widen widen) {
  struct Operands {
    Word left[4];
    Word right[2];
  } mine;
  std::memcpy(mine.left, left, sizeof left);
  std::memcpy(mine.right, right, sizeof right);
  const auto all = emulated::Block::current->exchange(mine);
  const unsigned lane = emulated::Block::thread->lane();
  emulated::Block::current->multiplied(4 * 8 * per_word);
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + e / 2 * 8;
    const unsigned column = lane % 4 * 2 + e % 2;
    double total = sum[e];
    for (unsigned word = 0; word < 8; ++word) {
      const Word a =
          emulated::shown<Operands>(all, row % 8 * 4 + word % 4).left[row / 8 + word / 4 * 2];
      const Word b = emulated::shown<Operands>(all, column * 4 + word % 4).right[word / 4];
      for (int i = 0; i < per_word; ++i) {
        total += static_cast<double>(widen(a, i)) * static_cast<double>(widen(b, i));
      }
    }
    sum[e] = static_cast<float>(total);
  }
}

inline float bf16_of(Word word, int i) {
  return __uint_as_float(i == 0 ? word << 16 : word & 0xFFFF0000U);
}
inline float fp16_of(Word word, int i) {
  return widen_fp16(static_cast<unsigned short>(i == 0 ? word & 0xFFFF : word >> 16));
}

inline void mma_bf16(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  mma<2>(sum, left, right, bf16_of);
}

inline void mma_fp16(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  mma<2>(sum, left, right, fp16_of);
}

inline void mma_tf32(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  mma<1>(sum, left, right, [](Word word, int) { return __uint_as_float(word & 0xFFFFE000U); });
}

inline void half_mma_bf16(float (&sum)[4], const Word (&left)[2], Word right) {
  mma_bf16(sum, {left[0], left[1], 0, 0}, {right, 0});
}

inline void half_mma_fp16(float (&sum)[4], const Word (&left)[2], Word right) {
  mma_fp16(sum, {left[0], left[1], 0, 0}, {right, 0});
}

}  // namespace strobe::cuda::ptx
