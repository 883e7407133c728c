#include "verify/spot_check.h"

#include <gtest/gtest.h>

#include "strobe/registry.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

TEST(SpotCheck, AGoodKernelPassesWhateverIsDrawn) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Operands operands(
        {.problem = Problem::parse("b1 sq128 h8 d128 fp32"), .inputs = {.seed = seed}});
    const SpotCheck check(operands, Pass::forward);
    Execution::make(Registry::instance().find("flash"), operands, Pass::forward)->run();
    const Accuracy accuracy = check.judge();
    EXPECT_EQ(accuracy.verdict, Verdict::pass) << "inputs " << seed << ": " << accuracy.reason;
    EXPECT_EQ(accuracy.scope, "32 rows");
    EXPECT_GT(accuracy.max_error, 0);
  }
}

TEST(SpotCheck, ASmallErrorInEveryRowFails) {
  Operands operands({.problem = Problem::parse("b1 sq128 h8 d128 fp32")});
  const SpotCheck check(operands, Pass::forward);
  Execution::make(Registry::instance().find("flash"), operands, Pass::forward)->run();
  const TensorView out = operands.tensors(Pass::forward).out;
  auto* const values = static_cast<float*>(out.data);
  for (std::int64_t row = 0; row < 128 * 8; ++row) values[row * 128 + 5] += 2e-6F;
  EXPECT_EQ(check.judge().verdict, Verdict::fail);
}

TEST(SpotCheck, SaysWhyItDidNotJudge) {
  Operands few({.problem = Problem::parse("b1 sq2 h1 d8 fp32")});
  const SpotCheck check(few, Pass::forward);
  Execution::make(Registry::instance().find("flash"), few, Pass::forward)->run();
  EXPECT_EQ(check.judge().verdict, Verdict::not_checked) << "too few rows for a bound";
  EXPECT_TRUE(check.judge().measured);
}

}  // namespace
}  // namespace strobe::lab
