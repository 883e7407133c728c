// Attention by matrix products, with each library that is installed.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/gemm/library.h"
#include "reference/gemm/row_kernels.h"
#include "reference/specials.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "support/tensors.h"
#include "verify/grid.h"
#include "verify/verify.h"

namespace strobe::reference::gemm {
namespace {

using test::Operands;

const Implementation& gemm() {
  return Registry::instance().find("gemm");
}

/// Forward, then backward if the problem asks for it.
void compute(const Problem& problem, Operands& operands, int threads = 0) {
  Problem forward = problem;
  forward.pass = Pass::forward;
  test::run(gemm(), forward, operands.views(), threads);
  if (problem.pass == Pass::backward) test::run(gemm(), problem, operands.views(), threads);
}

class Gemm : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Found found = find_library();
    if (found.library == nullptr) GTEST_SKIP() << "needs " << found.missing;
  }

  const test::ScopedVariable forced_{"STROBE_GEMM_LIBRARY", GetParam()};
};

TEST_P(Gemm, IsExactByTheRule) {
  const auto cases = lab::quick_grid();
  int exact = 0;
  for (std::size_t i = 0; i < cases.size(); i += 4) {
    const lab::Report report = lab::verify(cases[i], gemm());
    EXPECT_TRUE(report.status == lab::Status::ok || report.status == lab::Status::unsupported)
        << cases[i].name() << ": " << report.reason;
    if (report.status == lab::Status::ok) ++exact;
  }
  EXPECT_GT(exact, 40);
}

// More than one block of queries and of keys, with what makes the blocks uneven.
TEST_P(Gemm, IsExactByTheRuleAcrossBlocks) {
  for (const char* text :
       {"b1 sq300 sk1100 h2 hk1 d40 fp32 causal bwd", "b1 sq300 sk1100 h1 d40 bf16 causal bwd",
        "b1 sq700 h1 d16 dv24 fp32 w200:30 sinks bwd", "b1 sq700 h1 d16 bf16 w100:300 cap20 bwd",
        "lq290,513 lk600,70 h2 d8 fp32 alibi drop0.2 bwd",
        "b1 sq270 sk520 h1 d8 fp16 bias:bhqk bwd"}) {
    const lab::Report report = lab::verify({.problem = Problem::parse(text)}, gemm());
    EXPECT_EQ(report.status, lab::Status::ok) << text << ": " << report.reason;
  }
}

TEST_P(Gemm, IsTheSameOnAnyNumberOfCores) {
  for (const char* text : {"b1 s700 h4 hk2 d40 fp32 causal sinks bwd", "b1 s600 h1 d64 bf16 bwd",
                           "lq400,0,1,250 lk10,300,500,250 h3 d21 fp16 drop0.2 alibi bwd"}) {
    const Problem problem = Problem::parse(text);
    Operands one = test::make_operands(problem, 5);
    compute(problem, one, 1);
    for (const int threads : {2, 7}) {
      Operands many = test::make_operands(problem, 5);
      compute(problem, many, threads);
      EXPECT_EQ(one.out.bytes(), many.out.bytes()) << text;
      EXPECT_EQ(one.lse.bytes(), many.lse.bytes()) << text;
      EXPECT_EQ(one.dq.bytes(), many.dq.bytes()) << text;
      EXPECT_EQ(one.dk.bytes(), many.dk.bytes()) << text;
      EXPECT_EQ(one.dv.bytes(), many.dv.bytes()) << text;
      EXPECT_EQ(one.dsinks.bytes(), many.dsinks.bytes()) << text;
    }
  }
}

// A product multiplies what a mask hides with 0, and 0 times infinity is NaN.
TEST_P(Gemm, HiddenKeysDoNotShow) {
  for (const char* text : {"b1 s100 h1 d8 fp32 causal bwd", "b1 s100 h1 d8 bf16 causal bwd"}) {
    const Problem problem = Problem::parse(text);
    Operands clean = test::make_operands(problem, 6);
    Operands dirty = test::make_operands(problem, 6);
    for (std::int64_t c = 0; c < 8; ++c) {
      dirty.v.set(99 * 8 + c, kInfinity), dirty.k.set(99 * 8 + c, kNaN);
    }
    compute(problem, clean);
    compute(problem, dirty);
    const double tolerance = problem.dtype == DType::fp32 ? 1e-5 : 0.05;
    for (std::int64_t i = 0; i < 99 * 8; ++i) {  // rows that do not see the last key
      ASSERT_NEAR(clean.out[i], dirty.out[i], tolerance) << i;
      ASSERT_NEAR(clean.dq[i], dirty.dq[i], tolerance) << i;
    }
    EXPECT_TRUE(std::isnan(dirty.out[99 * 8]));
  }
}

TEST_P(Gemm, MemoryDoesNotGrowWithTheSquare) {
  const auto bytes = [](const char* text) {
    return gemm().plan(Problem::parse(text), {.threads = 2}).workspace_bytes;
  };
  EXPECT_LT(bytes("b1 s65536 h8 d64 fp32"), std::size_t{300} << 20);  // k and v are 268 MB
  EXPECT_LT(bytes("b1 s65536 h1 d64 fp32 bwd"), std::size_t{800} << 20);
  EXPECT_LT(bytes("b1 s65536 h1 d64 fp32 w100:0 bwd"), bytes("b1 s65536 h1 d64 fp32 bwd"));
}

TEST_P(Gemm, SaysWhatItCannotDo) {
  EXPECT_EQ(gemm().supports(Problem::parse("s8 fp32 bias:hqk bwd")).missing,
            std::vector<std::string>{"the gradient of a bias that is broadcast (has bias:bhqk)"});
  EXPECT_TRUE(gemm().supports(Problem::parse("s8 fp32 bias:hqk")));
  EXPECT_TRUE(gemm().supports(Problem::parse("s8 fp32 bias:bhqk bwd")));
  EXPECT_FALSE(gemm().supports(Problem::parse("s8 int8")));
}

TEST_P(Gemm, PlanNamesTheLibrary) {
  const TuningRecord tuning = gemm().plan(Problem::parse("s8 fp32")).tuning;
  EXPECT_EQ(tuning.front().first, "library");
  EXPECT_EQ(tuning.front().second, find_library().library->name());
}

INSTANTIATE_TEST_SUITE_P(Libraries, Gemm, testing::Values("onednn", "openblas"));

TEST(GemmLibrary, RefusesAnUnknownName) {
  const test::ScopedVariable forced("STROBE_GEMM_LIBRARY", "abacus");
  EXPECT_EQ(find_library().missing,
            "STROBE_GEMM_LIBRARY is 'abacus', allowed is onednn or openblas");
  EXPECT_FALSE(gemm().supports(Problem::parse("s8 fp32")));
}

TEST(GemmRows, ExponentialsAreExactToTheLastPlace) {
  const RowKernels& kernels = row_kernels();
  std::vector<float> values;
  for (float x = 0; x > -100; x -= 0.0371F) values.push_back(3 + x);
  std::vector<float> results = values;
  const float sum =
      kernels.exponentials(results.data(), static_cast<std::int64_t>(results.size()), 3);
  double expected_sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::exp(static_cast<double>(values[i] - 3));
    expected_sum += expected;
    ASSERT_NEAR(results[i], expected, 2e-7 * expected + 1.3e-38) << values[i];
  }
  EXPECT_EQ(results[0], 1);
  EXPECT_NEAR(sum, expected_sum, 1e-6 * expected_sum);

  float special[] = {-kInfinity, kNaN, 0, 0};
  EXPECT_TRUE(std::isnan(kernels.exponentials(special, 3, 0)));
  EXPECT_EQ(special[0], 0);
  EXPECT_TRUE(std::isnan(special[1]));
  EXPECT_EQ(special[2], 1);
}

TEST(GemmRows, AWeightOfZeroHidesTheValue) {
  const RowKernels& kernels = row_kernels();
  for (const std::int64_t count : {3, 16, 21}) {
    std::vector<float> weights(static_cast<std::size_t>(count), 0.5F), values(weights.size(), 2);
    weights[1] = 0, values[1] = kNaN;
    const auto others = static_cast<float>(count - 1);
    EXPECT_EQ(kernels.dot(weights.data(), values.data(), count), others);
    kernels.centre(weights.data(), 1, values.data(), count);
    EXPECT_EQ(values[1], 0);
    EXPECT_EQ(values[2], 0.5F);
  }
}

TEST(GemmRows, NarrowsAsEverybodyElse) {
  std::vector<float> values{1, 1.00390625F, 1.01171875F, -3e38F, 3.4e38F, kInfinity, kNaN, 1e-40F};
  for (int i = 0; i < 20; ++i) values.push_back(std::sin(static_cast<float>(i)));
  std::vector<std::uint16_t> narrowed(values.size());
  row_kernels().narrow(values.data(), static_cast<std::int64_t>(values.size()), narrowed.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float back = load_element(narrowed.data(), static_cast<std::int64_t>(i), DType::bf16);
    const auto expected = static_cast<float>(round_to(DType::bf16, values[i]));
    EXPECT_TRUE(back == expected || (std::isnan(back) && std::isnan(expected))) << values[i];
  }
}

}  // namespace
}  // namespace strobe::reference::gemm
