#include "cuda/kernels/flash/padding.h"

#include <gtest/gtest.h>

namespace strobe::cuda::flash {
namespace {

TEST(Padding, LeavesRowsOfWholeChunksAlone) {
  for (const char* text : {"b1 sq8 h2 d128 bf16", "b1 sq8 h2 d136 dv40 fp16", "b1 sq8 h2 d4 fp32"})
    EXPECT_EQ(Padding::padded(Problem::parse(text)), Problem::parse(text)) << text;
}

TEST(Padding, MakesOthersWholeSectors) {
  const Problem problem = Problem::parse("b2 sq8 h2 d129 bf16 causal");
  const Problem padded = Padding::padded(problem);
  EXPECT_EQ(padded.dim, 144);
  EXPECT_EQ(padded.value_dim(), 144);
  EXPECT_EQ(padded.softmax_scale(), problem.softmax_scale()) << "that of the dim that was";
  EXPECT_TRUE(padded.causal);

  const Problem values = Padding::padded(Problem::parse("b1 sq8 h2 d64 dv33 fp16"));
  EXPECT_EQ(values.dim, 64);
  EXPECT_EQ(values.value_dim(), 48);
}

}  // namespace
}  // namespace strobe::cuda::flash
