#include "cuda/jit/build.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "cuda/jit/nvrtc.h"
#include "cuda/warnings.h"
#include "strobe/error.h"
#include "strobe/trace.h"
#include "support/environment.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = R"(
#include "config.cuh"
extern "C" __global__ void scale(float* data) { data[threadIdx.x] *= config::kFactor; }
)";

KernelDescription scale(int factor) {
  return {.name = "scale",
          .source = "scale.cu",
          .entries = {"scale"},
          .constants = {{"kFactor", factor}},
          .threads = 32};
}

class Build : public testing::Test {
 protected:
  void SetUp() override {
    if (!found_nvrtc().missing.empty()) GTEST_SKIP() << found_nvrtc().missing;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "strobe_build_test." + info->name();
    fs::remove_all(folder_);
  }

  Built build_here(const KernelDescription& kernel, const char* architecture = "sm_90a",
                   const char* source = kSource) const {
    return build(kernel, source, Architecture::parse(architecture), DiskCache(folder_));
  }

  fs::path folder_{};
};

TEST_F(Build, CompilesOnceAndThenFindsIt) {
  const Built first = build_here(scale(3));
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(first.binary.cubin.substr(1, 3), "ELF");
  ASSERT_EQ(first.binary.resources.size(), 1u);
  EXPECT_EQ(first.binary.resources[0].entry, "scale");
  EXPECT_GT(first.binary.resources[0].registers, 0);
  const Built again = build_here(scale(3));
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.binary.cubin, first.binary.cubin);
  EXPECT_EQ(again.binary.resources, first.binary.resources);
}

TEST_F(Build, CompilesOnceForAllWhoAskAtATime) {
  constexpr int kThreads = 8;
  std::vector<std::string> cubins(kThreads);
  start_recording();
  {
    std::vector<std::jthread> threads;
    for (std::string& cubin : cubins)
      threads.emplace_back([&] { cubin = build_here(scale(3)).binary.cubin; });
  }
  int compiled = 0;
  for (const RecordedThread& thread : stop_recording()) {
    for (const RecordedSpan& span : thread.spans) compiled += span.name == "compile" ? 1 : 0;
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(cubins, std::vector<std::string>(kThreads, build_here(scale(3)).binary.cubin));
}

TEST_F(Build, AnErrorIsThrownToAllWhoAskAtATime) {
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          build_here(scale(3), "sm_90a", "int broken = missing;\n");
        } catch (const CompileError&) {
          ++refused;
        }
      });
    }
  }
  EXPECT_EQ(refused, 4);
}

TEST_F(Build, AnythingThatMattersMakesAnotherKey) {
  build_here(scale(3));
  EXPECT_FALSE(build_here(scale(4)).from_cache) << "configuration";
  EXPECT_FALSE(build_here(scale(3), "sm_80").from_cache) << "architecture";
  EXPECT_FALSE(build_here(scale(3), "sm_90a", (std::string(kSource) + "//").c_str()).from_cache)
      << "source";
  const strobe::test::ScopedVariable lines("STROBE_CUDA_LINEINFO", "1");
  EXPECT_FALSE(build_here(scale(3)).from_cache) << "options";
}

TEST_F(Build, KeysSayWhatPeopleWantToSee) {
  const std::string key = cache_key(scale(3), kSource, Architecture::parse("sm_90a"), "13.0");
  EXPECT_EQ(key_line(key, "kernel"), "scale");
  EXPECT_EQ(key_line(key, "configuration"), "kFactor 3, kThreads 32");
  EXPECT_EQ(key_line(key, "architecture"), "sm_90a");
  EXPECT_EQ(key_line(key, "compiler"), "NVRTC 13.0");
  EXPECT_EQ(key_line(key, "nothing"), "");
}

TEST_F(Build, ATornFileIsCompiledAgain) {
  build_here(scale(3));
  fs::resize_file(DiskCache(folder_).entries().at(0).path, 100);
  EXPECT_FALSE(build_here(scale(3)).from_cache);
  EXPECT_TRUE(build_here(scale(3)).from_cache);
}

TEST_F(Build, WithoutAFolderItWorksAndSaysSoOnce) {
  std::ofstream(folder_) << "a file where the folder would have to be";
  const std::size_t before = warnings().size();
  EXPECT_FALSE(build_here(scale(3)).from_cache);
  EXPECT_FALSE(build_here(scale(4)).from_cache);
  ASSERT_EQ(warnings().size(), before + 1);
  EXPECT_NE(warnings().back().find(folder_.string()), std::string::npos) << warnings().back();
}

TEST_F(Build, ErrorsShowTheConfigurationAndTheCompilersLog) {
  try {
    build_here(scale(3), "sm_90a", "#include \"config.cuh\"\nint broken = config::kMissing;\n");
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    const std::string text = error.what();
    for (const char* part : {"kernel scale", "kFactor 3", "sm_90a", "kMissing", "scale.cu(2)"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
    }
  }
  EXPECT_TRUE(DiskCache(folder_).entries().empty());
}

TEST_F(Build, AnEntryThatIsNotThereIsAnError) {
  KernelDescription kernel = scale(3);
  kernel.entries.emplace_back("forgotten");
  EXPECT_THROW(build_here(kernel), CompileError);
}

TEST_F(Build, AnUnknownArchitectureIsRefusedInWords) {
  EXPECT_THROW(build_here(scale(3), "sm_81"), Unsupported);
}

}  // namespace
}  // namespace strobe::cuda::jit
