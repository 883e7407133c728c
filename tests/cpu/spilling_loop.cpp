// Loops for check_inner_loops.py to tell apart: the 10 accumulators of `calm` fit into the
// registers, the 40 of `spilling` do not, and `straying` keeps a number in a vector. Nobody calls
// them.
#if defined(__x86_64__)
using Vector [[gnu::vector_size(32)]] = float;  // compiled for AVX2: 16 registers
#define STRAY(n) __asm__ volatile("vmovq %0, %%xmm15\nvmovq %%xmm15, %0" : "+r"(n) : : "xmm15")
#else
using Vector [[gnu::vector_size(16)]] = float;  // NEON: 32 registers
#define STRAY(n) __asm__ volatile("fmov d31, %0\nfmov %0, d31" : "+r"(n) : : "v31")
#endif

namespace {

/// c[rows][2] = sum over k of a[k][rows] * b[k][2]
template <int rows, bool strays = false>
inline __attribute__((always_inline)) void products(long count, const float* a, const Vector* b,
                                                    Vector* c) {
  Vector sums[rows][2] = {};
  for (long k = 0; k < count; ++k) {
    long counted = count;
    if (strays) STRAY(counted);
#pragma GCC unroll 20
    for (int r = 0; r < rows; ++r) {
      sums[r][0] += a[k * rows + r] * b[2 * k];
      sums[r][1] += a[k * rows + r] * b[2 * k + 1];
    }
  }
  for (int r = 0; r < rows; ++r) {
    c[2 * r] = sums[r][0];
    c[2 * r + 1] = sums[r][1];
  }
}

}  // namespace

void calm(long count, const float* a, const Vector* b, Vector* c);
void calm(long count, const float* a, const Vector* b, Vector* c) {
  products<5>(count, a, b, c);
}

void spilling(long count, const float* a, const Vector* b, Vector* c);
void spilling(long count, const float* a, const Vector* b, Vector* c) {
  products<20>(count, a, b, c);
}

void straying(long count, const float* a, const Vector* b, Vector* c);
void straying(long count, const float* a, const Vector* b, Vector* c) {
  products<5, true>(count, a, b, c);
}
