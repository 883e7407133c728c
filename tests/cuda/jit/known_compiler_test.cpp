#include "cuda/jit/known_compiler.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/environment.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

class RememberedCompiler : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "strobe_known_compiler." + info->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    library_ = folder_ / "libnvrtc.so.13";
    std::ofstream(library_) << "a compiler";
  }

  KnownCompiler known() const { return KnownCompiler(folder_ / "kernels"); }

  fs::path folder_{};
  fs::path library_{};
};

TEST_F(RememberedCompiler, IsTheOneThatWasFound) {
  EXPECT_EQ(known().version(), std::nullopt);
  known().remember(library_, "13.0");
  EXPECT_EQ(known().version(), "13.0");
  known().remember(library_, "12.9");
  EXPECT_EQ(known().version(), "12.9");
}

TEST_F(RememberedCompiler, IsForgottenWhenItsFileChangesOrGoes) {
  known().remember(library_, "13.0");
  const auto time = fs::last_write_time(library_);
  fs::last_write_time(library_, time + std::chrono::seconds(1));
  EXPECT_EQ(known().version(), std::nullopt);
  fs::last_write_time(library_, time);
  EXPECT_EQ(known().version(), "13.0");
  fs::resize_file(library_, 3);
  fs::last_write_time(library_, time);
  EXPECT_EQ(known().version(), std::nullopt);
  fs::remove(library_);
  EXPECT_EQ(known().version(), std::nullopt);
}

TEST_F(RememberedCompiler, IsForgottenWhereAnotherMayBeFound) {
  known().remember(library_, "13.0");
  for (const char* name : {"STROBE_NVRTC", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"}) {
    const strobe::test::ScopedVariable elsewhere(name, "/another/place");
    EXPECT_EQ(known().version(), std::nullopt) << name;
  }
  EXPECT_EQ(known().version(), "13.0");
}

TEST_F(RememberedCompiler, ATornFileSaysNothing) {
  known().remember(library_, "13.0");
  const fs::path file = folder_ / "kernels" / "compiler";
  const auto bytes = fs::file_size(file);
  for (const auto kept : {bytes - 1, bytes - 3, bytes / 2, std::uintmax_t{0}}) {
    known().remember(library_, "13.0");
    fs::resize_file(file, kept);
    EXPECT_EQ(known().version(), std::nullopt) << kept << " of " << bytes << " bytes";
  }
}

TEST_F(RememberedCompiler, AFolderThatCannotBeWrittenIsNoTrouble) {
  const KnownCompiler nowhere("/proc/no/such/folder");
  nowhere.remember(library_, "13.0");
  EXPECT_EQ(nowhere.version(), std::nullopt);
}

}  // namespace
}  // namespace strobe::cuda::jit
