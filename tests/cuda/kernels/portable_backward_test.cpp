#include <gtest/gtest.h>

#include "cuda/kernels/portable_backward/stages.h"

namespace strobe::cuda::portable_backward {
namespace {

TEST(PortableBackward, TheWorkspaceHoldsTheSumsOfKernelsForOperandsThatLieAnywhere) {
  const Problem problem{.pass = Pass::backward, .batch = 2, .seqlen_q = 77, .heads = 3};
  for (const int number : {80, 86, 90, 120}) {
    for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::fp32}) {
      for (int dim = 8; dim <= 512; dim += 8) {
        PortableBackwardFeatures features{.arithmetic = arithmetic, .dim = dim, .value_dim = dim};
        WorkspacePlan plan;
        const jit::Architecture architecture{.major = number / 10, .minor = number % 10};
        const auto arrays = plan_arrays(problem, features, architecture, plan);
        for (const bool aligned : {true, false}) {
          features.aligned = aligned;
          const int row = query_sum_floats(
              choose_portable_backward(BackwardKernel::key_gradients, features, number));
          EXPECT_GE(arrays.dq_sum_floats, problem.heads * problem.total_q() * row)
              << "dim " << dim << ", sm_" << number << (aligned ? ", aligned" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace strobe::cuda::portable_backward
