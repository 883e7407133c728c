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

constexpr const char* kOld = STROBE_FAKE_NVRTC_11;
constexpr const char* kTwelve = STROBE_FAKE_NVRTC_12;
constexpr const char* kThirteen = STROBE_FAKE_NVRTC_13;
constexpr int kDriver = 12040;

TEST(Nvrtc, IsTheFirstThatServes) {
  const auto version = [](const std::vector<std::string>& files, int driver) {
    const FoundNvrtc found = first_that_serves(files, driver);
    return found.nvrtc ? found.nvrtc->version() : found.missing;
  };
  EXPECT_EQ(version({"/no/such/libnvrtc.so", kOld, "libm.so.6", kTwelve}, kDriver), "12.5");
  EXPECT_EQ(version({kThirteen, kTwelve}, kDriver), "12.5") << "the driver would not load its code";
  EXPECT_EQ(version({kThirteen, kTwelve}, 13000), "13.5");
  EXPECT_EQ(version({kTwelve, kThirteen}, 13000), "12.5");
  EXPECT_EQ(version({kThirteen, kTwelve}, 0), "13.5") << "there is no driver";
  EXPECT_EQ(version({kThirteen, kTwelve}, 11040), "13.5") << "nor one that can be used";
}

TEST(Nvrtc, OfNoUseIsToldOfTheFirst) {
  const auto missing = [](const std::vector<std::string>& files) {
    const FoundNvrtc found = first_that_serves(files, kDriver);
    EXPECT_EQ(found.nvrtc, nullptr);
    return found.missing;
  };
  const auto expect_words = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  expect_words(missing({kOld, kThirteen, "/no/such/libnvrtc.so"}), {kOld, "11.5", "12.0 or later"});
  expect_words(missing({kThirteen, kOld}),
               {kThirteen, "13.5", "CUDA 12", "update the driver", "STROBE_NVRTC"});
  expect_words(missing({"/no/such/libnvrtc.so"}), {"no NVRTC", "/no/such/libnvrtc.so"});
}

TEST(Nvrtc, ThatIsNamedIsTakenWhateverTheDriver) {
  const strobe::test::ScopedVariable chosen("STROBE_NVRTC", kThirteen);
  const strobe::test::ScopedVariable driver("STROBE_CUDA_DRIVER",
                                            STROBE_FAKE_BROKEN);  // of CUDA 12
  const FoundNvrtc found = load_nvrtc();
  ASSERT_NE(found.nvrtc, nullptr) << found.missing;
  EXPECT_EQ(found.nvrtc->version(), "13.5");
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
