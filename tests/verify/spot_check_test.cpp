#include "verify/spot_check.h"

#include <fmt/format.h>
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

/// Raises a column of a contiguous tensor, a little more in every row: the last is the worst.
void spoil(const TensorView& view, std::int64_t column) {
  const std::int64_t dim = view.shape[view.rank - 1];
  auto* const values = static_cast<float*>(view.data);
  for (std::int64_t row = 0; row < view.elements() / dim; ++row)
    values[row * dim + column] += 1 + 0.001F * static_cast<float>(row);
}

TEST(SpotCheck, SaysWhereTheOutputIsWrong) {
  for (const char* problem : {"b2 sq40 h4 d16 dv8 fp32", "lq40,0,23 h4 d16 dv8 fp32"}) {
    Operands operands({.problem = Problem::parse(problem)});
    const SpotCheck check(operands, Pass::forward);
    Execution::make(Registry::instance().find("flash"), operands, Pass::forward)->run();
    const TensorView out = operands.tensors(Pass::forward).out;
    spoil(out, 5);
    const std::string reason = check.judge().reason;
    bool found = false;
    for (std::int64_t i = 5; i < out.elements(); i += 8) {
      found = found || reason.starts_with(fmt::format("out: {} is {:.9g}, ", index_text(out, i),
                                                      static_cast<const float*>(out.data)[i]));
    }
    EXPECT_TRUE(found) << problem << ": " << reason;
  }
}

TEST(SpotCheck, NamesTheFirstGradientThatIsWrong) {
  Operands operands({.problem = Problem::parse("b1 sq32 h2 d16 fp32 bwd")});
  const SpotCheck check(operands, Pass::backward);
  const Implementation& flash = Registry::instance().find("flash");
  Execution::make(flash, operands, Pass::forward)->run();
  Execution::make(flash, operands, Pass::backward)->run();
  const Tensors gradients = operands.tensors(Pass::backward);
  ASSERT_EQ(check.judge().verdict, Verdict::pass);
  spoil(gradients.dv, 2);
  EXPECT_TRUE(check.judge().reason.starts_with("dv: [0, 31, 1, 2] is ")) << check.judge().reason;
  spoil(gradients.dk, 3);
  EXPECT_TRUE(check.judge().reason.starts_with("dk: [0, 31, 1, 3] is ")) << check.judge().reason;
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
