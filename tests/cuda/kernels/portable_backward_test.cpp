#include <gtest/gtest.h>

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

}  // namespace
}  // namespace strobe::cuda::portable_backward
