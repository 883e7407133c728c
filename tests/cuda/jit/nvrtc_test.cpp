#include "cuda/jit/nvrtc.h"

#include <gtest/gtest.h>

#include "support/environment.h"

namespace strobe::cuda::jit {
namespace {

TEST(Nvrtc, SaysWhyThereIsNone) {
  const strobe::test::ScopedVariable chosen("STROBE_NVRTC", "/no/such/libnvrtc.so");
  const FoundNvrtc found = load_nvrtc();
  EXPECT_EQ(found.nvrtc, nullptr);
  for (const char* part :
       {"no NVRTC", "/no/such/libnvrtc.so", "nvidia-cuda-nvrtc", "STROBE_NVRTC"}) {
    EXPECT_NE(found.missing.find(part), std::string::npos) << found.missing;
  }
}

TEST(Nvrtc, MustBeOne) {
  const strobe::test::ScopedVariable chosen("STROBE_NVRTC", "libm.so.6");
  const FoundNvrtc found = load_nvrtc();
  EXPECT_EQ(found.nvrtc, nullptr);
  EXPECT_NE(found.missing.find("nvrtcCompileProgram"), std::string::npos) << found.missing;
}

TEST(Nvrtc, SaysWhatItIs) {
  if (!found_nvrtc().missing.empty()) GTEST_SKIP() << found_nvrtc().missing;
  EXPECT_FALSE(nvrtc().path().empty());
  EXPECT_GE(std::stoi(nvrtc().version()), 12);
  EXPECT_TRUE(nvrtc().knows(80));
  EXPECT_FALSE(nvrtc().knows(81));
}

}  // namespace
}  // namespace strobe::cuda::jit
