// Included by the x86 vector types, in the namespace STROBE_ISA names.
#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

constexpr int kTransposeBlock = 8;

/// Transposes 8 x 8.
inline void turn_eight(__m256 (&row)[8]) {
  __m256 pair[8];  // 2 x 2 blocks turned
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  __m256 quad[8];  // 4 x 4 blocks turned
  for (int i = 0; i < 8; i += 4) {
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xEE);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20);
    row[i + 4] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31);
  }
}

/// target[c][r] = source[r][c] for an 8 x 8 block.
inline void transpose_block(const float* source, std::int64_t source_stride, float* target,
                            std::int64_t target_stride) {
  __m256 row[8];
  for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(source + i * source_stride);
  turn_eight(row);
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(target + i * target_stride, row[i]);
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
