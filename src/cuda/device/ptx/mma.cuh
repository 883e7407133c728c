#pragma once
// Products on tensor cores, sum[16 × 8] += left[16 × k] · right[k × 8], one per warp.
//
// With group = lane / 4 and member = lane % 4 a lane holds
//     sum    {0,1} row group, {2,3} row group + 8; columns 2·member + {0,1}
//     left   rows and columns in units of 4 bytes: (group, member), (group + 8, member),
//            (group, member + 4), (group + 8, member + 4)
//     right  the same of its transpose: (group, member), (group, member + 4)

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

#define STROBE_MMA(instruction)                                            \
  asm(instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])             \
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]))

STROBE_DEVICE void mma_bf16(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  STROBE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
}

STROBE_DEVICE void mma_fp16(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  STROBE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
}

STROBE_DEVICE void mma_tf32(float (&sum)[4], const Word (&left)[4], const Word (&right)[2]) {
  STROBE_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
}

#undef STROBE_MMA

// Half as many columns of left: its first two words, and the first of right.
#define STROBE_HALF_MMA(instruction)                              \
  asm(instruction " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" \
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])    \
      : "r"(left[0]), "r"(left[1]), "r"(right))

STROBE_DEVICE void half_mma_bf16(float (&sum)[4], const Word (&left)[2], Word right) {
  STROBE_HALF_MMA("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32");
}

STROBE_DEVICE void half_mma_fp16(float (&sum)[4], const Word (&left)[2], Word right) {
  STROBE_HALF_MMA("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
}

#undef STROBE_HALF_MMA

}  // namespace strobe::cuda::ptx
