#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/implementations.h"
#include "reference/specials.h"
#include "strobe/error.h"
#include "strobe/oracle.h"
#include "support/tensors.h"

namespace strobe {
namespace {

using test::make_operands;
using test::Operands;
using test::Tensor;

struct Case {
  const char* name;
  Problem problem;
};

// Lengths around the block of 64 rows that a task handles.
std::vector<Case> cases() {
  const Bias none{.per_batch = false, .per_head = false, .per_query = false};
  return {
      {"plain", {.batch = 2, .seqlen_q = 70, .seqlen_k = 131, .heads = 2, .dim = 21}},
      {"value_dim", {.seqlen_q = 5, .seqlen_k = 9, .dim = 8, .dim_v = 24}},
      {"one_query_one_key", {.seqlen_q = 1, .dim = 8}},
      {"one_query", {.seqlen_q = 1, .seqlen_k = 147, .heads = 3, .dim = 16, .causal = true}},
      {"causal_more_keys", {.seqlen_q = 65, .seqlen_k = 130, .dim = 16, .causal = true}},
      {"causal_fewer_keys", {.seqlen_q = 130, .seqlen_k = 65, .dim = 16, .causal = true}},
      {"window", {.seqlen_q = 96, .seqlen_k = 100, .dim = 8, .window = {.left = 7, .right = 3}}},
      {"grouped_heads", {.seqlen_q = 66, .heads = 6, .heads_k = 2, .dim = 16, .causal = true}},
      {"multi_query", {.seqlen_q = 9, .heads = 4, .heads_k = 1, .dim = 16}},
      {"softcap", {.seqlen_q = 33, .dim = 16, .scale = 4.0, .softcap = 3}},
      {"alibi", {.seqlen_q = 33, .seqlen_k = 50, .heads = 2, .dim = 16, .alibi = true}},
      {"sinks", {.batch = 2, .seqlen_q = 33, .heads = 2, .dim = 16, .causal = true, .sinks = true}},
      {"dropout", {.seqlen_q = 67, .seqlen_k = 70, .heads = 2, .dim = 16, .dropout = 0.17}},
      {"negative_scale", {.seqlen_q = 12, .dim = 16, .scale = -0.3}},
      {"bias", {.batch = 2, .seqlen_q = 12, .seqlen_k = 70, .heads = 2, .dim = 8, .bias = Bias{}}},
      {"bias_k", {.batch = 2, .seqlen_q = 12, .seqlen_k = 13, .heads = 2, .dim = 8, .bias = none}},
      {"bias_bqk",
       {.batch = 2, .seqlen_q = 12, .heads = 2, .dim = 8, .bias = Bias{.per_head = false}}},
      {"variable_length",
       {.batch = 4,
        .seqlen_q = 80,
        .seqlen_k = 90,
        .heads = 4,
        .heads_k = 2,
        .dim = 16,
        .causal = true,
        .sinks = true,
        .bias = Bias{.per_batch = false, .per_head = false},
        .lengths_q = {70, 0, 3, 1},
        .lengths_k = {66, 5, 0, 90}}},
      {"everything",
       {.batch = 2,
        .seqlen_q = 70,
        .seqlen_k = 75,
        .heads = 4,
        .heads_k = 2,
        .dim = 16,
        .dim_v = 8,
        .causal = true,
        .window = {.left = 20},
        .softcap = 2,
        .alibi = true,
        .sinks = true,
        .bias = Bias{.per_batch = false},
        .dropout = 0.2}},
      {"no_keys", {.seqlen_q = 3, .seqlen_k = 0, .dim = 8, .sinks = true}},
      {"no_queries", {.seqlen_q = 0, .seqlen_k = 3, .dim = 8}},
      {"no_batch", {.batch = 0, .seqlen_q = 3, .dim = 8}},
  };
}

double epsilon(DType dtype) {
  return dtype == DType::fp32 ? 0x1p-24 : dtype == DType::fp16 ? 0x1p-11 : 0x1p-8;
}

/// A few dozen roundings of the dtype, relative to the largest value.
void expect_close(const Tensor& got, const std::vector<double>& expected, DType dtype,
                  const char* name) {
  ASSERT_EQ(got.size(), static_cast<std::int64_t>(expected.size())) << name;
  double largest = 1;
  for (const double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const double tolerance = 16 * epsilon(dtype) * largest;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(expected[i])) {
      EXPECT_NEAR(got[i], expected[i], tolerance) << name << '[' << i << ']';
    } else {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << name << '[' << i << ']';
      if (!std::isnan(expected[i])) {
        EXPECT_EQ(got[i], expected[i]) << name << '[' << i << ']';
      }
    }
  }
}

void expect_like_oracle(const Implementation& implementation, Problem problem, Operands& operands) {
  problem.pass = Pass::forward;
  test::run(implementation, problem, operands.views());
  problem.pass = Pass::backward;
  test::run(implementation, problem, operands.views());

  const OracleResult truth = oracle(problem, operands.views());
  expect_close(operands.out, truth.out, problem.dtype, "out");
  expect_close(operands.lse, truth.lse, problem.dtype, "lse");
  expect_close(operands.dq, truth.dq, problem.dtype, "dq");
  expect_close(operands.dk, truth.dk, problem.dtype, "dk");
  expect_close(operands.dv, truth.dv, problem.dtype, "dv");
  if (problem.bias) expect_close(operands.dbias, truth.dbias, problem.dtype, "dbias");
  if (problem.sinks) expect_close(operands.dsinks, truth.dsinks, problem.dtype, "dsinks");
}

class Features : public testing::TestWithParam<Case> {
 protected:
  Problem problem(DType dtype) const {
    Problem result = GetParam().problem;
    result.pass = Pass::backward;
    result.dtype = dtype;
    return result;
  }
};

TEST_P(Features, StandardIsCloseToTheOracle) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    Operands operands = make_operands(problem(dtype), 31);
    expect_like_oracle(*reference::make_standard(), problem(dtype), operands);
  }
}

TEST_P(Features, OracleImplementationRoundsTheOracleOnce) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    Operands operands = make_operands(problem(dtype), 32);
    expect_like_oracle(*reference::make_oracle(), problem(dtype), operands);
    const OracleResult truth = oracle(problem(dtype), operands.views());
    for (std::int64_t i = 0; i < operands.dk.size(); ++i) {
      ASSERT_EQ(operands.dk[i], round_to(dtype, truth.dk[i]));
    }
  }
}

TEST_P(Features, StandardIsBitEqualForAnyNumberOfThreads) {
  const auto standard = reference::make_standard();
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    Problem what = problem(DType::bf16);
    what.pass = pass;
    Operands one = make_operands(what, 33);
    test::run(*standard, what, one.views(), 1);
    for (const int threads : {2, 8}) {
      Operands many = make_operands(what, 33);
      test::run(*standard, what, many.views(), threads);
      EXPECT_EQ(one.out.bytes(), many.out.bytes());
      EXPECT_EQ(one.lse.bytes(), many.lse.bytes());
      EXPECT_EQ(one.dq.bytes(), many.dq.bytes());
      EXPECT_EQ(one.dk.bytes(), many.dk.bytes());
      EXPECT_EQ(one.dv.bytes(), many.dv.bytes());
      EXPECT_EQ(one.dbias.bytes(), many.dbias.bytes());
      EXPECT_EQ(one.dsinks.bytes(), many.dsinks.bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, Features, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

Problem special(std::int64_t queries, std::int64_t keys) {
  return {.pass = Pass::backward,
          .seqlen_q = queries,
          .seqlen_k = keys,
          .dim = 8,
          .dtype = DType::fp32,
          .bias = Bias{.per_batch = false, .per_head = false, .per_query = true}};
}

void fill_row(Tensor& tensor, std::int64_t row, std::int64_t dim, float value) {
  for (std::int64_t c = 0; c < dim; ++c) tensor.set(row * dim + c, value);
}

TEST(Standard, HiddenKeysDoNotLeak) {
  Problem problem = special(70, 75);
  problem.window = {.left = 30, .right = 2};
  problem.dropout = 0.3;
  Operands operands = make_operands(problem, 41);
  for (std::int64_t i = 0; i < 70; ++i) {
    for (const std::int64_t key : {20, 21, 66}) operands.bias.set(i * 75 + key, -kInfinity);
    operands.bias.set(8 * 75 + i, -kInfinity);  // the eighth query sees nothing
  }
  for (const std::int64_t key : {20, 21, 66}) {
    fill_row(operands.k, key, 8, kNaN);
    fill_row(operands.v, key, 8, kInfinity);
  }
  fill_row(operands.dout, 8, 8, kNaN);
  expect_like_oracle(*reference::make_standard(), problem, operands);
  for (std::int64_t i = 0; i < operands.out.size(); ++i)
    ASSERT_TRUE(std::isfinite(operands.out[i]));
}

TEST(Standard, WhatIsSeenPropagatesAsInTheOracle) {
  for (const float poison : {kNaN, kInfinity, -kInfinity}) {
    Problem problem = special(20, 20);
    problem.causal = true;
    Operands operands = make_operands(problem, 42);
    operands.q.fill(0.5F);
    fill_row(operands.k, 9, 8, poison);
    expect_like_oracle(*reference::make_standard(), problem, operands);

    operands = make_operands(problem, 43);
    fill_row(operands.v, 9, 8, poison);
    expect_like_oracle(*reference::make_standard(), problem, operands);
  }
}

TEST(Standard, RowsOfMinusInfinitySeeNothing) {
  Problem problem = special(3, 4);
  Operands operands = make_operands(problem, 44);
  operands.q.fill(1);
  operands.k.fill(-kInfinity);
  operands.v.fill(kNaN);
  expect_like_oracle(*reference::make_standard(), problem, operands);
  EXPECT_EQ(operands.lse[0], -kInfinity);
}

TEST(Standard, LargeNegativeLogitsSurvive) {
  Problem problem = special(1, 2);
  problem.pass = Pass::forward;
  problem.scale = 1;
  Operands operands = make_operands(problem, 45);
  operands.q.fill(-100);
  operands.k.fill(125);  // logits of -100000
  operands.bias.fill(0);
  test::run(*reference::make_standard(), problem, operands.views());
  EXPECT_FLOAT_EQ(operands.out[0], (operands.v[0] + operands.v[8]) / 2);
  EXPECT_FLOAT_EQ(operands.lse[0], -100000 + std::log(2.0F));
}

TEST(Standard, PlanSaysWhatItWillDo) {
  const auto standard = reference::make_standard();
  const Problem problem{.batch = 2, .seqlen_q = 5, .seqlen_k = 7, .heads = 3, .dim = 8};
  const TuningRecord expected = {
      {"algorithm", "unfused"}, {"scores", "bf16 2x3x5x7"}, {"threads", "2"}};
  EXPECT_EQ(standard->plan(problem, {.threads = 2}).tuning, expected);
}

TEST(Standard, SaysWhatIsMissing) {
  const auto standard = reference::make_standard();
  const Problem problem{.seqlen_q = 8, .dtype = DType::int8};
  EXPECT_EQ(standard->supports(problem).missing, std::vector<std::string>{"dtype int8"});
  EXPECT_THROW(standard->plan(problem), Unsupported);
}

TEST(Standard, RefusesAWorkspaceThatCannotBeAddressed) {
  const Problem problem{
      .batch = 1 << 10, .seqlen_q = 0x7FFFFFFF, .heads = 1, .dim = 1, .dtype = DType::bf16};
  EXPECT_THROW(reference::make_standard()->plan(problem), OutOfMemory);
}

}  // namespace
}  // namespace strobe
