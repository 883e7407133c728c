// Multiply-adds on registers, as fast as they go: what the roof of a roofline is measured by.
#include "config.cuh"
#include "device/basics.cuh"
#include "device/ptx/mma.cuh"

namespace strobe::cuda {

/// Two bf16 numbers, or an fp32 number, between 1 and 2, of either sign and different in every
/// thread: zeros would draw less power than numbers do, and let the clocks run faster.
STROBE_DEVICE Word operand(Word index) {
  const Word hash = (threadIdx.x * 8 + index) * 0x9E3779B9U;
  return 0x3F803F80U | (hash >> 3 & 0x807F807FU);
}

/// Keeps the sums from being left out.
template <int kCount>
STROBE_DEVICE void use(const float (&sums)[kCount], float* out) {
  float total = 0;
  for (const float sum : sums) total += sum;
  if (total == 0.123F) *out = total;
}

/// `kSums` products that do not wait for each other, `steps` times.
template <class Multiply>
STROBE_DEVICE void multiply_on_tensor_cores(int steps, float* out, Multiply multiply) {
  constexpr int kSums = 8;
  const Word left[4] = {operand(0), operand(1), operand(2), operand(3)};
  const Word right[2] = {operand(4), operand(5)};
  float sums[kSums][4] = {};
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i][0] = static_cast<float>(i);  // equal sums would be one
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) multiply(sums[i], left, right);
  }
#pragma unroll
  for (int i = 0; i < kSums; ++i) use(sums[i], out);
}

}  // namespace strobe::cuda

using namespace strobe::cuda;

extern "C" __global__ void __launch_bounds__(config::kThreads) mma_bf16(int steps, float* out) {
  multiply_on_tensor_cores(steps, out,
                           [](float(&sum)[4], const Word(&left)[4], const Word(&right)[2]) {
                             ptx::mma_bf16(sum, left, right);
                           });
}

extern "C" __global__ void __launch_bounds__(config::kThreads) mma_tf32(int steps, float* out) {
  multiply_on_tensor_cores(steps, out,
                           [](float(&sum)[4], const Word(&left)[4], const Word(&right)[2]) {
                             ptx::mma_tf32(sum, left, right);
                           });
}

extern "C" __global__ void __launch_bounds__(config::kThreads) fma_fp32(int steps, float* out) {
  constexpr int kSums = 16;
  const float factor = 1.0F / __uint_as_float(operand(0) | 1U);  // below 1: the sums stay finite
  const float term = __uint_as_float(operand(1));
  float sums[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int repeat = 0; repeat < 4; ++repeat) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] = __fmaf_rn(sums[i], factor, term);
    }
  }
  use(sums, out);
}
