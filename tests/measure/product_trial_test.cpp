#include "measure/product_trial.h"

#include <gtest/gtest.h>

#include <array>

#include "measure/benchmark.h"
#include "strobe/registry.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

bool has_library() {
  return static_cast<bool>(Registry::instance().find("gemm").supports(Problem::parse("s8 fp32")));
}

TEST(Product, IsThatOfTheMatricesBesideBlocksAndThreads) {
  if (!has_library()) GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  for (const std::int64_t size : {1, 100, 256, 700}) {
    for (const int threads : {1, 3}) {
      EXPECT_NO_THROW(ProductTrial({}, size, DType::fp32, {.threads = threads})) << size;
    }
  }
}

TEST(Product, TakesTurnsWithImplementations) {
  if (!has_library()) GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  const ProductTrial product({}, 64, DType::fp32, {});
  Operands operands({.problem = Problem::parse("s64 d16 fp32")});
  const std::array entrants{Entrant{&Registry::instance().find("flash"), {}}};
  const auto results =
      benchmark(entrants, operands, Pass::forward, nullptr, SamplingPolicy::exactly(5), &product);
  ASSERT_TRUE(results.at(0).product);
  EXPECT_EQ(results[0].rivals, 1u);
  EXPECT_EQ(results[0].product->size, 64);
  EXPECT_EQ(results[0].product->flops(), 2.0 * 64 * 64 * 64);
  EXPECT_GT(results[0].product->flops_per_second(results[0].product->ms.median), 0);
  EXPECT_FALSE(results[0].product->library.empty());
}

TEST(Product, IsNotTimedForItself) {
  if (!has_library()) GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  const ProductTrial product({}, 64, DType::fp32, {});
  Operands operands({.problem = Problem::parse("s64 d16 int8")});
  const std::array entrants{Entrant{&Registry::instance().find("flash"), {}}};
  const auto results =
      benchmark(entrants, operands, Pass::forward, nullptr, SamplingPolicy::exactly(1), &product);
  EXPECT_EQ(results.at(0).status, Status::unsupported);
  EXPECT_FALSE(results[0].product);
}

TEST(Product, SaysWhatItNeeds) {
  const test::ScopedVariable none("STROBE_GEMM_LIBRARY", "none");
  EXPECT_THROW(ProductTrial({}, 8, DType::fp32, {}), Unsupported);
}

TEST(Product, OfADtypeThatTheLibraryLacksIsRefused) {
  if (!has_library()) GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  try {
    const ProductTrial product({}, 8, DType::fp16, {});
    FAIL() << "fp16 was multiplied";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("fp16"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("fp32"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace strobe::lab
