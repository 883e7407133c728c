#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle_row.h"
#include "strobe/oracle.h"
#include "support/tensors.h"

namespace strobe {
namespace {

using test::make_operands;
using test::Operands;
using test::Tensor;

struct GradientCase {
  const char* name;
  Problem problem;
};

Problem small(const Problem& features) {
  Problem problem = features;
  problem.pass = Pass::backward;
  problem.dtype = DType::fp32;
  problem.dim = 3;
  return problem;
}

std::vector<GradientCase> gradient_cases() {
  const Bias none{.per_batch = false, .per_head = false, .per_query = false};
  std::vector<GradientCase> list = {
      {"plain", {.seqlen_q = 3}},
      {"batch_and_value_dim", {.batch = 2, .seqlen_q = 2, .seqlen_k = 3, .heads = 2, .dim_v = 2}},
      {"grouped_heads", {.seqlen_q = 2, .heads = 4, .heads_k = 2}},
      {"one_key", {.seqlen_q = 2, .seqlen_k = 1}},
      {"causal_more_keys", {.seqlen_q = 3, .seqlen_k = 5, .causal = true}},
      {"causal_fewer_keys", {.seqlen_q = 5, .seqlen_k = 3, .causal = true}},
      {"window", {.seqlen_q = 4, .seqlen_k = 5, .window = {.left = 1, .right = 1}}},
      {"softcap", {.seqlen_q = 3, .scale = 2.0, .softcap = 1.5}},
      {"alibi", {.seqlen_q = 3, .heads = 2, .alibi = true}},
      {"sinks", {.batch = 2, .seqlen_q = 3, .heads = 2, .sinks = true}},
      {"sinks_and_empty_rows", {.seqlen_q = 4, .seqlen_k = 2, .causal = true, .sinks = true}},
      {"dropout", {.seqlen_q = 4, .heads = 2, .dropout = 0.3, .dropout_seed = 11}},
      {"negative_scale", {.seqlen_q = 3, .scale = -0.7}},
      {"bias", {.batch = 2, .seqlen_q = 2, .seqlen_k = 3, .heads = 2, .bias = Bias{}}},
      {"bias_hqk", {.batch = 2, .seqlen_q = 2, .heads = 2, .bias = Bias{.per_batch = false}}},
      {"bias_bqk", {.batch = 2, .seqlen_q = 2, .heads = 2, .bias = Bias{.per_head = false}}},
      {"bias_bhk", {.batch = 2, .seqlen_q = 2, .heads = 2, .bias = Bias{.per_query = false}}},
      {"bias_k", {.batch = 2, .seqlen_q = 2, .heads = 4, .heads_k = 2, .bias = none}},
      {"variable_length",
       {.batch = 3,
        .seqlen_q = 3,
        .heads = 2,
        .heads_k = 1,
        .causal = true,
        .bias = none,
        .lengths_q = {2, 0, 3},
        .lengths_k = {3, 1, 2}}},
      {"everything",
       {.batch = 2,
        .seqlen_q = 4,
        .seqlen_k = 5,
        .heads = 4,
        .heads_k = 2,
        .dim_v = 2,
        .causal = true,
        .window = {.left = 2},
        .softcap = 2,
        .alibi = true,
        .sinks = true,
        .bias = Bias{.per_batch = false},
        .dropout = 0.2}},
  };
  for (GradientCase& each : list) each.problem = small(each.problem);
  return list;
}

/// Σ dout ∘ out, whose gradients the backward pass gives.
double loss(const Problem& problem, Operands& operands) {
  Problem forward = problem;
  forward.pass = Pass::forward;
  const OracleResult result = oracle(forward, operands.views());
  double sum = 0;
  for (std::size_t i = 0; i < result.out.size(); ++i) {
    sum += result.out[i] * operands.dout[static_cast<std::int64_t>(i)];
  }
  return sum;
}

/// The derivative of the loss by one element of an input. Inputs are multiples of 2^-8 below 1,
/// so x ± step is exact in float32.
double central_difference(const Problem& problem, Operands& operands, Tensor& input,
                          std::int64_t index, float step) {
  const float value = input[index];
  input.set(index, value + step);
  const double above = loss(problem, operands);
  input.set(index, value - step);
  const double below = loss(problem, operands);
  input.set(index, value);
  return (above - below) / (2 * static_cast<double>(step));
}

void check(const Problem& problem, Operands& operands, Tensor& input,
           const std::vector<double>& gradient, const char* name) {
  ASSERT_EQ(static_cast<std::int64_t>(gradient.size()), input.size()) << name;
  for (std::int64_t i = 0; i < input.size(); ++i) {
    // Richardson's combination leaves an error of the order of step^4.
    const double coarse = central_difference(problem, operands, input, i, 0x1p-6F);
    const double fine = central_difference(problem, operands, input, i, 0x1p-7F);
    EXPECT_NEAR(gradient[i], (4 * fine - coarse) / 3, 2e-7) << name << '[' << i << ']';
  }
}

class OracleGradients : public testing::TestWithParam<GradientCase> {};

TEST_P(OracleGradients, AreDerivativesOfTheForwardPass) {
  const Problem problem = GetParam().problem;
  Operands operands = make_operands(problem, 21);
  const OracleResult result = oracle(problem, operands.views());
  check(problem, operands, operands.q, result.dq, "dq");
  check(problem, operands, operands.k, result.dk, "dk");
  check(problem, operands, operands.v, result.dv, "dv");
  if (problem.bias) check(problem, operands, operands.bias, result.dbias, "dbias");
  if (problem.sinks) check(problem, operands, operands.sinks, result.dsinks, "dsinks");
}

TEST_P(OracleGradients, DoNotDependOnThreads) {
  const Problem problem = GetParam().problem;
  Operands operands = make_operands(problem, 22);
  const OracleResult one = reference::compute_oracle(problem, operands.views(), 1);
  const OracleResult many = reference::compute_oracle(problem, operands.views(), 8);
  EXPECT_EQ(one.dq, many.dq);
  EXPECT_EQ(one.dk, many.dk);
  EXPECT_EQ(one.dv, many.dv);
  EXPECT_EQ(one.dbias, many.dbias);
  EXPECT_EQ(one.dsinks, many.dsinks);
}

INSTANTIATE_TEST_SUITE_P(Features, OracleGradients, testing::ValuesIn(gradient_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(OracleBackward, RowsThatSeeNothingHaveNoGradients) {
  const Problem problem = small({.seqlen_q = 4, .seqlen_k = 2, .causal = true, .sinks = true});
  Operands operands = make_operands(problem, 23);
  for (int c = 0; c < 6; ++c) operands.dout.set(c, std::nanf(""));  // of the two empty rows
  const OracleResult result = oracle(problem, operands.views());
  for (int c = 0; c < 6; ++c) EXPECT_EQ(result.dq[c], 0);
  for (const auto* gradient : {&result.dq, &result.dk, &result.dv, &result.dsinks}) {
    for (const double value : *gradient) EXPECT_FALSE(std::isnan(value));
  }
}

TEST(OracleBackward, OneVisibleKeyPassesItsGradientThroughV) {
  // p = 1, whatever the logit: dq = dk = 0, dv = dout.
  const Problem problem = small({.seqlen_q = 1});
  Operands operands = make_operands(problem, 24);
  const OracleResult result = oracle(problem, operands.views());
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(result.dq[c], 0);
    EXPECT_EQ(result.dk[c], 0);
    EXPECT_EQ(result.dv[c], operands.dout[c]);
  }
}

TEST(OracleBackward, AnEmptyBatchIsLegal) {
  const Problem problem = small({.batch = 0, .seqlen_q = 2, .sinks = true, .bias = Bias{}});
  Operands operands = make_operands(problem, 25);
  const OracleResult result = oracle(problem, operands.views());
  EXPECT_TRUE(result.dq.empty());
  EXPECT_EQ(result.dsinks, std::vector<double>{0});
}

}  // namespace
}  // namespace strobe
