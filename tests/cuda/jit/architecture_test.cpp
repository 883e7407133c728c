#include "cuda/jit/architecture.h"

#include <gtest/gtest.h>

#include "strobe/error.h"

namespace strobe::cuda::jit {
namespace {

TEST(Architecture, ReadsItsOwnText) {
  for (const char* text : {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    EXPECT_EQ(Architecture::parse(text).text(), text);
  }
  EXPECT_EQ(Architecture::parse("sm_120").number(), 120);
  EXPECT_LT(Architecture::parse("sm_89"), Architecture::parse("sm_90"));
}

TEST(Architecture, RefusesEverythingElse) {
  for (const char* text : {"", "sm_", "sm_75", "90", "sm_90b", "compute_90", "sm_9x", "sm_-90"}) {
    EXPECT_THROW(Architecture::parse(text), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace strobe::cuda::jit
