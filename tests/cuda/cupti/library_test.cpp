// CUPTI as it is found, and its metrics for chips that need not be here.
#include "cuda/cupti/library.h"

#include <gtest/gtest.h>

#include "cuda/cupti/metrics.h"
#include "measure/device_metrics.h"

namespace strobe::cuda::cupti {
namespace {

TEST(CuptiLibrary, WithoutCountersStillTellsOfKernels) {
  const SharedObject old({STROBE_FAKE_OLD_CUPTI});
  ASSERT_TRUE(old) << old.error();
  EXPECT_TRUE(Library(old).missing().empty());
  EXPECT_FALSE(Profiler(old).missing().empty());
}

TEST(CuptiLibrary, TellsItsVersion) {
  EXPECT_EQ(Library(SharedObject({STROBE_FAKE_OLD_CUPTI})).version(), "API 22");
  EXPECT_EQ(Library(SharedObject({STROBE_FAKE_CUPTI})).version(), "13.1");
}

TEST(CuptiLibrary, NamesTheCallAndWhatToDo) {
  try {
    fail("cuptiSomething", abi::Result::insufficient_privileges);
  } catch (const Refused& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("cuptiSomething returns "), std::string::npos);
    EXPECT_NE(std::string(refusal.what()).find("run as root"), std::string::npos);
  }
}

/// Those that a chip lacks, by the library that is installed; skips where there is none.
class CuptiMetrics : public testing::TestWithParam<const char*> {};

TEST_P(CuptiMetrics, AreKnownToTheChip) {
  std::vector<std::string> unknown;
  std::size_t passes = 0;
  try {
    Metrics metrics(profiler(), GetParam(), {}, lab::device_metrics());
    unknown = metrics.unknown();
    std::vector<std::uint8_t> config = metrics.config();
    passes = pass_count(profiler(), config);
  } catch (const Refused& refusal) {
    GTEST_SKIP() << refusal.what();
  }
  const std::string_view chip = GetParam();
  std::erase_if(unknown, [&](const std::string& name) {
    return (name.find("_gmma_") != std::string::npos && chip != "GH100") ||
           (name.find("_imc_miss_") != std::string::npos && chip.starts_with("GB"));
  });
  EXPECT_EQ(unknown, std::vector<std::string>{});
  EXPECT_GE(passes, 1u);
  EXPECT_LE(passes, 30u) << "each is a call of what is profiled";
}

TEST(CuptiLibrary, WhatAChipLacksIsNamed) {
  const std::vector<std::string> wanted{"dram__bytes_read.sum", "no__such_thing.sum"};
  try {
    const Metrics metrics(profiler(), "GH100", {}, wanted);
    EXPECT_EQ(metrics.known(), std::vector<std::string>{wanted[0]});
    EXPECT_EQ(metrics.unknown(), std::vector<std::string>{wanted[1]});
  } catch (const Refused& refusal) {
    GTEST_SKIP() << refusal.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, CuptiMetrics,
                         testing::Values("GA100", "AD102", "GH100", "GB100", "GB202"));

}  // namespace
}  // namespace strobe::cuda::cupti
