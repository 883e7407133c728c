#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/specials.h"
#include "strobe/dropout.h"
#include "strobe/error.h"
#include "strobe/oracle.h"
#include "support/tensors.h"

namespace strobe {
namespace {

using test::make_operands;
using test::Operands;
using test::Tensor;

constexpr double kExact = 1e-12;
constexpr double kInputRounding = 1e-6;  // where an input such as ln 3 is no float

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance = kExact) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(expected[i])) {
      EXPECT_NEAR(got[i], expected[i], tolerance) << "at " << i;
    } else {
      EXPECT_EQ(got[i], expected[i]) << "at " << i;
    }
  }
}

// One head, dim 1, scale 1, every q·k = 0: a row's output is the mean of the v that it sees.
Problem averages(std::int64_t queries, std::int64_t keys) {
  return {.seqlen_q = queries, .seqlen_k = keys, .dim = 1, .dtype = DType::fp32, .scale = 1.0};
}

Operands averages_of(const Problem& problem, const std::vector<float>& values) {
  Operands operands = make_operands(problem, 1);
  operands.q.fill(0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    operands.v.set(static_cast<std::int64_t>(i), values[i]);
  }
  return operands;
}

TEST(Oracle, SoftmaxOfTwoLogits) {
  // Logits 0 and ln 3: p = 1/4 and 3/4, LSE = ln 4.
  const Problem problem = averages(1, 2);
  Operands operands = averages_of(problem, {10, 20});
  operands.q.fill(1);
  operands.k.set(0, 0);
  operands.k.set(1, std::log(3.0F));
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {17.5}, kInputRounding);
  expect_near(result.lse, {std::log(4.0)}, kInputRounding);
}

TEST(Oracle, NegativeScaleAndAnotherValueDim) {
  // q·k = 0 and ln 3, scale -1: p = 3/4 and 1/4.
  Problem problem = averages(1, 2);
  problem.scale = -1;
  problem.dim_v = 2;
  Operands operands = averages_of(problem, {4, 40, 8, 80});
  operands.q.fill(1);
  operands.k.set(0, 0);
  operands.k.set(1, std::log(3.0F));
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {5, 50}, 1e-5);
  expect_near(result.lse, {std::log(4.0 / 3.0)}, kInputRounding);
}

TEST(Oracle, DefaultScaleIsOneOverRootDim) {
  // dim 4, q·k = 2 · ln 3 and 0, scale 1/2.
  const Problem problem{.seqlen_q = 1, .seqlen_k = 2, .dim = 4, .dim_v = 1, .dtype = DType::fp32};
  Operands operands = make_operands(problem, 1);
  operands.q.fill(0.5F);
  for (int c = 0; c < 4; ++c) operands.k.set(c, std::log(3.0F));
  for (int c = 4; c < 8; ++c) operands.k.set(c, 0);
  operands.v.set(0, 1);
  operands.v.set(1, 0);
  expect_near(oracle(problem, operands.views()).out, {0.75}, kInputRounding);
}

TEST(Oracle, CausalIsAlignedToTheBottomRightWithMoreKeys) {
  // Two queries, four keys: the first sees 0..2, the last sees all.
  Problem problem = averages(2, 4);
  problem.causal = true;
  Operands operands = averages_of(problem, {1, 2, 4, 8});
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {7.0 / 3, 15.0 / 4});
  expect_near(result.lse, {std::log(3.0), std::log(4.0)});
}

TEST(Oracle, CausalIsAlignedToTheBottomRightWithFewerKeys) {
  // Four queries, two keys: the first two see nothing.
  Problem problem = averages(4, 2);
  problem.causal = true;
  Operands operands = averages_of(problem, {1, 2});
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {0, 0, 1, 1.5});
  expect_near(result.lse, {-kInfinity, -kInfinity, 0, std::log(2.0)});
}

TEST(Oracle, Windows) {
  // Three queries stand at keys 1, 2, 3 of four.
  Problem problem = averages(3, 4);
  Operands operands = averages_of(problem, {1, 2, 4, 8});
  problem.window = {.left = 0, .right = 0};
  expect_near(oracle(problem, operands.views()).out, {2, 4, 8});
  problem.window = {.left = -1, .right = 0};
  expect_near(oracle(problem, operands.views()).out, {1.5, 7.0 / 3, 15.0 / 4});
  problem.window = {.left = 1, .right = -1};
  expect_near(oracle(problem, operands.views()).out, {15.0 / 4, 14.0 / 3, 6});
  problem.window = {.left = 0, .right = 1};
  problem.causal = true;  // wins over the right limit
  expect_near(oracle(problem, operands.views()).out, {2, 4, 8});
}

TEST(Oracle, MaskAgreesWithProblemVisible) {
  for (const std::int64_t queries : {1, 3, 6}) {
    for (const std::int64_t keys : {1, 4, 6}) {
      for (const std::int64_t left : {-1, 0, 1, 5, 9}) {
        for (const std::int64_t right : {-1, 0, 2, 9}) {
          for (const bool causal : {false, true}) {
            Problem problem = averages(queries, keys);
            problem.window = {left, right};
            problem.causal = causal;
            // Bit j of the sum of the visible 2^j says whether key j was seen.
            std::vector<float> powers;
            for (std::int64_t j = 0; j < keys; ++j) powers.push_back(static_cast<float>(1 << j));
            Operands operands = averages_of(problem, powers);
            const OracleResult result = oracle(problem, operands.views());
            for (std::int64_t i = 0; i < queries; ++i) {
              const KeyRange range = problem.visible(i, queries, keys);
              const double expected =
                  range.size() == 0 ? 0 : std::exp2(range.end) - std::exp2(range.begin);
              EXPECT_NEAR(result.out[i] * static_cast<double>(range.size()), expected, 1e-9)
                  << problem.text() << ", query " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Oracle, SoftcapBendsTheScaledLogit) {
  // Logits 2·tanh(0) and 2·tanh(3/2).
  Problem problem = averages(1, 2);
  problem.softcap = 2;
  Operands operands = averages_of(problem, {0, 1});
  operands.q.fill(1);
  operands.k.set(0, 0);
  operands.k.set(1, 3);
  const double e = std::exp(2 * std::tanh(1.5));
  expect_near(oracle(problem, operands.views()).out, {e / (1 + e)});
}

TEST(Oracle, AlibiCountsFromTheBottomRight) {
  // One query at key 2 of three: distances 2, 1, 0, slope 1/2.
  Problem problem = averages(1, 3);
  problem.alibi = true;
  Operands operands = averages_of(problem, {1, 10, 100});
  const double e = std::exp(-0.5);
  const double sum = e * e + e + 1;
  expect_near(oracle(problem, operands.views()).out, {(e * e + 10 * e + 100) / sum});
  expect_near(oracle(problem, operands.views()).lse, {std::log(sum)});

  operands.alibi_slopes = Tensor(DType::fp32, {1, 1}, 0.5F);  // [batch, heads]
  expect_near(oracle(problem, operands.views()).lse, {std::log(sum)});
}

TEST(Oracle, SinkTakesItsShareAndHasNoValue) {
  // Two keys and a sink, all logits 0: p = 1/3 each.
  Problem problem = averages(1, 2);
  problem.sinks = true;
  Operands operands = averages_of(problem, {3, 6});
  operands.sinks.fill(0);
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {3});
  expect_near(result.lse, {std::log(3.0)});
}

TEST(Oracle, ARowThatSeesNothingIgnoresItsSink) {
  Problem problem = averages(2, 1);
  problem.causal = true;
  problem.sinks = true;
  Operands operands = averages_of(problem, {4});
  operands.sinks.fill(0);
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {0, 2});
  expect_near(result.lse, {-kInfinity, std::log(2.0)});
}

TEST(Oracle, QueryHeadsShareKeyHeadsInOrder) {
  Problem problem = averages(1, 1);
  problem.heads = 6;
  problem.heads_k = 2;
  Operands operands = averages_of(problem, {1, 2});
  expect_near(oracle(problem, operands.views()).out, {1, 1, 1, 2, 2, 2});
}

TEST(Oracle, VariableLengthsWithEmptySequences) {
  // Queries 2, 0, 1, 1 against keys 1, 2, 0, 2: the third sequence sees nothing.
  Problem problem = averages(2, 2);
  problem.batch = 4;
  problem.heads = 2;
  problem.heads_k = 1;
  problem.lengths_q = {2, 0, 1, 1};
  problem.lengths_k = {1, 2, 0, 2};
  Operands operands = averages_of(problem, {1, 2, 4, 8, 16});
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {1, 1, 1, 1, 0, 0, 12, 12});
  const double two = std::log(2.0);
  expect_near(result.lse, {0, 0, -kInfinity, two, 0, 0, -kInfinity, two});  // [heads, total_q]
}

TEST(Oracle, BiasIsLocalToItsSequence) {
  // bias [batch, 1, 1, seqlen_k]: the second sequence has one key and uses the first entry.
  Problem problem = averages(1, 2);
  problem.batch = 2;
  problem.lengths_q = {1, 1};
  problem.lengths_k = {2, 1};
  problem.bias = Bias{.per_batch = true, .per_head = false, .per_query = false};
  Operands operands = averages_of(problem, {1, 2, 4});
  operands.bias = Tensor(DType::fp32, {2, 1, 1, 2}, {0, std::log(3.0F), 5, kNaN});
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {1.75, 4}, kInputRounding);
  expect_near(result.lse, {std::log(4.0), 5}, kInputRounding);
}

TEST(Oracle, BiasOfMinusInfinityHidesAKey) {
  Problem problem = averages(2, 2);
  problem.bias = Bias{};
  Operands operands = averages_of(problem, {1, 2});
  const float hide = -std::numeric_limits<float>::infinity();
  operands.bias = Tensor(DType::fp32, {1, 1, 2, 2}, {0, hide, hide, hide});
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {1, 0});
  expect_near(result.lse, {0, -kInfinity});
}

TEST(Oracle, DropoutFollowsTheExportedMask) {
  Problem problem = averages(3, 5);
  problem.batch = 2;
  problem.heads = 2;
  problem.dropout = 0.25;
  problem.dropout_seed = 7;
  Operands operands = averages_of(problem, {});
  Tensor mask(DType::uint8, {2, 2, 3, 5});
  export_dropout_mask(problem, mask.view());
  const OracleResult result = oracle(problem, operands.views());
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      for (int h = 0; h < 2; ++h) {
        double expected = 0;
        for (int j = 0; j < 5; ++j) {
          expected += mask[((b * 2 + h) * 3 + i) * 5 + j] * operands.v[(b * 5 + j) * 2 + h];
        }
        EXPECT_NEAR(result.out[(b * 3 + i) * 2 + h], expected / 5 / 0.75, kExact);
      }
    }
  }
  EXPECT_NEAR(result.lse[0], std::log(5.0), kExact);  // dropout comes after the softmax
}

TEST(Oracle, WhatIsHiddenDoesNotLeak) {
  Problem problem{.pass = Pass::backward, .seqlen_q = 4, .dim = 3, .dtype = DType::fp32};
  problem.window = {.left = 1, .right = 0};
  problem.bias = Bias{.per_batch = false, .per_head = false, .per_query = false};
  Operands operands = make_operands(problem, 3);
  operands.bias.set(3, -std::numeric_limits<float>::infinity());
  const OracleResult clean = oracle(problem, operands.views());
  for (int c = 0; c < 3; ++c) {
    operands.k.set(9 + c, kNaN);  // key 3 is hidden from all
    operands.v.set(9 + c, kNaN);
  }
  const OracleResult poisoned = oracle(problem, operands.views());
  EXPECT_EQ(clean.out, poisoned.out);
  EXPECT_EQ(clean.lse, poisoned.lse);
  EXPECT_EQ(clean.dq, poisoned.dq);
  EXPECT_EQ(clean.dk, poisoned.dk);
  EXPECT_EQ(clean.dv, poisoned.dv);
  EXPECT_EQ(clean.dbias, poisoned.dbias);

  operands.v.set(0, kNaN);  // key 0 is seen by queries 0 and 1 alone
  const OracleResult partly = oracle(problem, operands.views());
  EXPECT_TRUE(std::isnan(partly.out[0]) && std::isnan(partly.out[3]));
  EXPECT_FALSE(std::isnan(partly.out[6]) || std::isnan(partly.out[9]));
}

TEST(Oracle, InfiniteLogits) {
  const Problem problem = averages(1, 2);
  Operands operands = averages_of(problem, {1, 2});
  operands.q.fill(1);
  operands.k.fill(0);
  const float infinity = std::numeric_limits<float>::infinity();
  operands.k.set(0, -infinity);  // weighs nothing
  expect_near(oracle(problem, operands.views()).out, {2});
  operands.k.set(1, -infinity);  // as if nothing were seen
  expect_near(oracle(problem, operands.views()).out, {0});
  expect_near(oracle(problem, operands.views()).lse, {-kInfinity});
  operands.k.set(1, infinity);
  EXPECT_TRUE(std::isnan(oracle(problem, operands.views()).out[0]));
  operands.k.set(1, kNaN);
  EXPECT_TRUE(std::isnan(oracle(problem, operands.views()).lse[0]));
}

TEST(Oracle, LogitsBeyondTheRangeOfExp) {
  const Problem problem = averages(1, 2);
  Operands operands = averages_of(problem, {1, 3});
  operands.q.fill(1);
  operands.k.fill(-90000);
  const OracleResult result = oracle(problem, operands.views());
  expect_near(result.out, {2});
  expect_near(result.lse, {-90000 + std::log(2.0)});
}

TEST(Oracle, ReadsThroughStrides) {
  const Problem problem{.batch = 2, .seqlen_q = 3, .heads = 2, .dim = 4, .dtype = DType::bf16};
  Tensor packed(DType::bf16, {2, 3, 3, 2, 4});
  test::fill_random(packed, 5);
  const auto [q, k, v] = split_qkv(packed.view());
  const OracleResult strided = oracle(problem, {.q = q, .k = k, .v = v});

  Operands dense = make_operands(problem, 1);
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t c = 0; c < 8; ++c) {
      dense.q.set(row * 8 + c, packed[row * 24 + c]);
      dense.k.set(row * 8 + c, packed[row * 24 + 8 + c]);
      dense.v.set(row * 8 + c, packed[row * 24 + 16 + c]);
    }
  }
  EXPECT_EQ(strided.out, oracle(problem, dense.views()).out);
}

TEST(Oracle, ARowAloneIsTheRowOfTheWhole) {
  Problem problem{.batch = 2, .seqlen_q = 3, .seqlen_k = 4, .heads = 2, .dim = 2};
  problem.causal = true;
  problem.lengths_q = {1, 3};
  problem.lengths_k = {4, 2};
  Operands operands = make_operands(problem, 9);
  const OracleResult whole = oracle(problem, operands.views());
  const OracleRow row = oracle_row(problem, operands.views(), 1, 1, 2);
  const std::int64_t total_row = 1 + 2;  // queries 1 and 3 are packed
  EXPECT_EQ(row.lse, whole.lse[1 * 4 + total_row]);
  EXPECT_EQ(row.out[0], whole.out[(total_row * 2 + 1) * 2]);
  EXPECT_EQ(row.out[1], whole.out[(total_row * 2 + 1) * 2 + 1]);
  EXPECT_THROW(oracle_row(problem, operands.views(), 0, 0, 1), InvalidArgument);
  EXPECT_THROW(oracle_row(problem, operands.views(), 2, 0, 0), InvalidArgument);
  EXPECT_THROW(oracle_row(problem, operands.views(), 0, -1, 0), InvalidArgument);
}

}  // namespace
}  // namespace strobe
