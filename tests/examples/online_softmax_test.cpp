#include <gtest/gtest.h>

#include "online_softmax/online_softmax.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/verify.h"

namespace strobe {
namespace {

/// A registry of one's own will do: what is registered is what CONTRIBUTING.md builds.
const Implementation& example() {
  static Registry registry;
  if (registry.all().empty()) online_softmax::register_implementations(registry);
  return registry.find("online-softmax");
}

class OnlineSoftmaxProblems : public testing::TestWithParam<const char*> {};

TEST_P(OnlineSoftmaxProblems, KeepsTheRule) {
  const auto report = lab::verify({.problem = Problem::parse(GetParam())}, example());
  EXPECT_EQ(report.status, lab::Status::ok) << report.reason;
}

INSTANTIATE_TEST_SUITE_P(Example, OnlineSoftmaxProblems,
                         testing::Values("b2 sq33 h2 d64 fp32", "sq5 sk9 h6 hk2 d21 fp32 causal",
                                         "sq9 sk5 d8 fp32 causal", "sq64 d16 dv40 fp32 w7:3",
                                         "b2 sq0 sk3 d8 fp32", "sq3 sk0 d8 fp32"));

TEST(OnlineSoftmaxExample, SaysWhatItLacks) {
  const auto missing = example().supports(Problem::parse("sq4 d8 bf16 bwd drop0.1")).missing;
  EXPECT_EQ(missing, (std::vector<std::string>{"backward", "dtypes other than fp32", "dropout"}));
  EXPECT_THROW(example().plan(Problem::parse("sq4 d8 bf16")), Unsupported);
}

}  // namespace
}  // namespace strobe
