#include "cuda/kernels/flash/padding.h"

#include <gtest/gtest.h>

namespace strobe::cuda::flash {
namespace {

TEST(Padding, CopiesOnlyHeadsThatAreNoWholeChunks) {
  for (const char* text : {"b1 sq8 h2 d128 bf16", "b1 sq8 h2 d136 dv40 fp16", "b1 sq8 h2 d4 fp32"})
    EXPECT_FALSE(Padding::has_copies(Problem::parse(text))) << text;
  for (const char* text : {"b1 sq8 h2 d129 bf16", "b1 sq8 h2 d64 dv33 fp16", "b1 sq8 h2 d5 fp32"})
    EXPECT_TRUE(Padding::has_copies(Problem::parse(text))) << text;
}

TEST(Padding, MakesWholeSectors) {
  EXPECT_EQ(Padding::head_stride(129, DType::bf16), 144);
  EXPECT_EQ(Padding::head_stride(136, DType::fp16), 144);
  EXPECT_EQ(Padding::head_stride(33, DType::fp32), 40);
}

}  // namespace
}  // namespace strobe::cuda::flash
