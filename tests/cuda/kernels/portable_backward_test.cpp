#include <gtest/gtest.h>

#include "cuda/kernels/portable_backward/portable_backward.h"
#include "cuda/kernels/portable_backward/stages.h"

namespace strobe::cuda::portable_backward {
namespace {

TEST(PortableBackward, TheWorkspaceIsDqAndItsStatistics) {
  const Problem problem{.pass = Pass::backward, .batch = 2, .seqlen_q = 77, .heads = 3};
  const std::int64_t rows = problem.heads * problem.total_q();
  for (const int dim : {8, 59, 64, 72, 80, 96, 129, 136, 200, 256, 512}) {
    const std::int64_t in_chunks = (dim + 7) / 8 * 8;
    const auto most = static_cast<std::size_t>(
        rows * (in_chunks * 4 + static_cast<std::int64_t>(sizeof(RowStatistics))) +
        3 * kWorkspaceAlignment);
    WorkspacePlan plan;
    plan_arrays(problem, {.dim = dim, .value_dim = dim}, plan);
    EXPECT_LE(plan.bytes(), most) << "dim " << dim;
  }
}

TEST(PortableBackward, GridsThatNoGpuHasAreRefused) {
  const jit::Architecture ampere{.major = 8, .minor = 0};
  const auto expect_refusal = [&](const char* text, const char* about) {
    const auto missing = portable_backward::missing(Problem::parse(text), ampere);
    ASSERT_EQ(missing.size(), 1u) << text;
    EXPECT_EQ(missing.front(), about);
  };
  expect_refusal("b1 sq8 h70000 d8 bf16 bwd", "more than 65535 heads");
  // Blocks of keys of many sequences, and of keys and queries for a bias.
  expect_refusal("b70000 sq1 sk2000000 h1 d8 bf16 bwd", "so many keys and heads in one call");
  expect_refusal("b1 sq1000000 sk1000000 h16 d8 bf16 bias:hqk bwd",
                 "so many keys and heads in one call");
  EXPECT_TRUE(
      portable_backward::missing(Problem::parse("b1 sq1000000 sk1000000 h16 d8 bf16 bwd"), ampere)
          .empty());
}

}  // namespace
}  // namespace strobe::cuda::portable_backward
