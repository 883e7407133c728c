// Scales at both ends of what is allowed, where its products and quotients run out of fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cpu/isa.h"
#include "strobe/oracle.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "support/tensors.h"

namespace strobe::cpu {
namespace {

using test::Operands;
using test::Tensor;

/// More queries and keys than make whole tiles, and more than are read where they lie.
Problem scaled(DType dtype, double scale) {
  Problem problem = Problem::parse("b1 sq29 sk77 h2 d16 bwd");
  problem.dtype = dtype;
  problem.scale = scale;
  return problem;
}

class FlashScales : public testing::TestWithParam<std::tuple<const Isa*, DType>> {
 protected:
  void SetUp() override {
    if (!isa().runs_here()) GTEST_SKIP() << "this CPU has no " << isa().kernels->name;
    forced_.emplace("STROBE_CPU_ISA", isa().kernels->name);
  }
  static const Isa& isa() { return *std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }

 private:
  std::optional<test::ScopedVariable> forced_{};
};

/// Within a few roundings of the largest, and infinite where the dtype cannot hold it.
void expect_near(const Tensor& ours, const std::vector<double>& oracle, DType dtype,
                 const std::string& what) {
  double largest = 0;
  for (const double each : oracle) {
    const double rounded = round_to(dtype, each);
    if (std::isfinite(rounded)) largest = std::max(largest, std::fabs(rounded));
  }
  const double few = dtype == DType::fp32 ? 1e-5 : dtype == DType::fp16 ? 4e-3 : 3e-2;
  for (std::int64_t i = 0; i < ours.size(); ++i) {
    const double truth = round_to(dtype, oracle[static_cast<std::size_t>(i)]);
    if (std::isinf(truth)) {
      ASSERT_EQ(ours[i], truth) << what << ", " << i;
    } else {
      ASSERT_NEAR(ours[i], truth, few * largest) << what << ", " << i;
    }
  }
}

void expect_the_oracles(const Problem& problem, Operands& operands) {
  const Implementation& flash = Registry::instance().find("flash");
  Problem forward = problem;
  forward.pass = Pass::forward;
  test::run(flash, forward, operands.views());
  if (problem.pass == Pass::backward) test::run(flash, problem, operands.views());
  const OracleResult truth = oracle(problem, operands.views());
  const std::string of = " of " + problem.text();
  expect_near(operands.out, truth.out, problem.dtype, "out" + of);
  expect_near(operands.lse, truth.lse, DType::fp32, "lse" + of);
  expect_near(operands.dq, truth.dq, problem.dtype, "dq" + of);
  expect_near(operands.dk, truth.dk, problem.dtype, "dk" + of);
  expect_near(operands.dv, truth.dv, problem.dtype, "dv" + of);
}

void multiply(Tensor& tensor, float factor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, tensor[i] * factor);
}

TEST_P(FlashScales, SmallOnesSeeAllKeysAlike) {
  for (const double scale : {1e-37, 1e-36, 1e-33}) {
    const Problem problem = scaled(dtype(), scale);
    Operands operands = test::make_operands(problem, 3);
    expect_the_oracles(problem, operands);
  }
}

TEST_P(FlashScales, QueriesOfZerosSeeAllKeysAlike) {
  for (const double scale : {1e-37, 1e-36, 1e30, 1e32, 1e37}) {
    const Problem problem = scaled(dtype(), scale);
    Operands operands = test::make_operands(problem, 3);
    operands.q.fill(0);
    expect_the_oracles(problem, operands);
  }
}

// Products of queries and keys are as small as the scale is large.
TEST_P(FlashScales, LargeOnesOfSmallInputsMakeUsualLogits) {
  if (dtype() == DType::fp16) GTEST_SKIP() << "fp16 has no such inputs";
  const Problem problem = scaled(dtype(), 1e30);
  Operands operands = test::make_operands(problem, 3);
  multiply(operands.q, 1e-15F);
  multiply(operands.k, 1e-15F);
  expect_the_oracles(problem, operands);
}

// All logits of a row but one are far below its largest. Forward alone: what a gradient is wrong by
// is multiplied by the scale.
TEST_P(FlashScales, LargeOnesLeaveOneKey) {
  for (const double scale : {1e30, 1e32, 1e37}) {
    Problem problem = scaled(dtype(), scale);
    problem.pass = Pass::forward;
    Operands operands = test::make_operands(problem, 3);
    expect_the_oracles(problem, operands);
  }
}

std::vector<const Isa*> every_isa() {
  std::vector<const Isa*> result;
  for (const auto& isa : isas()) result.push_back(&isa);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Isas, FlashScales,
                         testing::Combine(testing::ValuesIn(every_isa()),
                                          testing::Values(DType::fp32, DType::bf16, DType::fp16)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param)->kernels->name) + "_" +
                                  std::string(name_of(std::get<1>(given.param)));
                         });

}  // namespace
}  // namespace strobe::cpu
