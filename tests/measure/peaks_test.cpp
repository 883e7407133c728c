#include "measure/peaks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "measure/flops.h"
#include "measure/roofline.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

const Peaks kPeaks{.threads = 2,
                   .flops_per_second = {{DType::fp32, 1e12}},
                   .copy = {{1000, 1e12}, {10'000, 1e11}, {100'000, 1e10}}};

TEST(Peaks, ASmallWorkingSetIsCopiedFaster) {
  EXPECT_EQ(kPeaks.bytes_per_second_within(10), 1e12);
  EXPECT_EQ(kPeaks.bytes_per_second_within(4000), 1e12) << "2 threads, source and target";
  EXPECT_EQ(kPeaks.bytes_per_second_within(4001), 1e11);
  EXPECT_EQ(kPeaks.bytes_per_second_within(1'000'000'000), 1e10);
  EXPECT_EQ(kPeaks.memory_bytes_per_second(), 1e10);
  EXPECT_EQ(Peaks{}.bytes_per_second_within(10), 0);
}

TEST(Roofline, IsTheLowerOfCeilingAndSlope) {
  const Problem decode = Problem::parse("b1 sq1 sk64 h1 d16 fp32");
  const Footprint bytes = footprint(decode);
  const Roofline cold = roofline(decode, kPeaks, Cache::cold);
  EXPECT_DOUBLE_EQ(cold.intensity,
                   flops(decode) / static_cast<double>(bytes.inputs + bytes.outputs));
  EXPECT_TRUE(cold.memory_bound());
  EXPECT_DOUBLE_EQ(cold.flops_per_second(), cold.intensity * 1e10);
  const Problem square = Problem::parse("b1 sq4096 h1 d64 fp32");
  const Roofline ceiling = roofline(square, kPeaks, Cache::cold);
  EXPECT_FALSE(ceiling.memory_bound());
  EXPECT_EQ(ceiling.flops_per_second(), 1e12);
}

TEST(Roofline, OfWarmCachesDependsOnTheSizeOfTheOperands) {
  const Problem small = Problem::parse("b1 sq1 sk8 h1 d16 fp32");
  EXPECT_EQ(roofline(small, kPeaks, Cache::warm).bytes_per_second, 1e12);
  EXPECT_EQ(roofline(small, kPeaks, Cache::cold).bytes_per_second, 1e10);
  EXPECT_EQ(roofline(small, kPeaks, Cache::rotated).bytes_per_second, 1e10);
}

TEST(Roofline, IsUnknownForADtypeWithoutAPeak) {
  EXPECT_EQ(roofline(Problem::parse("s8 bf16"), kPeaks, Cache::warm).flops_per_second(), 0);
}

/// A cache folder of the test's own, for others run at the same time.
class PeaksCache : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "strobe_peaks_test." +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
  const test::ScopedVariable variable_{"STROBE_CACHE_DIR", folder_.c_str()};
};

TEST_F(PeaksCache, MeasuresOnceAndRemembers) {
  const Peaks first = machine_peaks(1);
  ASSERT_TRUE(std::filesystem::exists(peaks_cache_path()));
  const Peaks second = machine_peaks(1);
  EXPECT_EQ(first.flops_per_second, second.flops_per_second) << "two measurements would differ";
  EXPECT_EQ(first.threads, second.threads);
  ASSERT_EQ(first.instructions.size(), second.instructions.size());
  for (std::size_t i = 0; i < first.instructions.size(); ++i) {
    EXPECT_EQ(first.instructions[i].name, second.instructions[i].name);
    EXPECT_EQ(first.instructions[i].dtype, second.instructions[i].dtype);
    EXPECT_EQ(first.instructions[i].per_second, second.instructions[i].per_second);
  }
  EXPECT_GT(first.flops_per_second.at(DType::int8), 0);
  EXPECT_GE(first.flops_per_second.at(DType::bf16), first.flops_per_second.at(DType::fp32));
  ASSERT_EQ(first.copy.size(), second.copy.size());
  EXPECT_EQ(first.memory_bytes_per_second(), second.memory_bytes_per_second());
  EXPECT_GE(machine_peaks(1, true).memory_bytes_per_second(), first.memory_bytes_per_second())
      << "the better of the two";
}

TEST(Peaks, TheBetterOfTwoMeasurementsIsKept) {
  Peaks busy{.threads = 2,
             .flops_per_second = {{DType::fp32, 5e11}, {DType::bf16, 9e12}},
             .instructions = {{"amx", DType::bf16, 9e12}, {"amx", DType::int8, 1e13}},
             .copy = {{1000, 2e12}, {10'000, 1e10}, {100'000, 1e9}}};
  Peaks quiet = kPeaks;
  quiet.instructions = {{"amx", DType::int8, 2e13}, {"amx", DType::bf16, 8e12}};
  busy.raise_to(quiet);
  EXPECT_EQ(busy.instructions[0].per_second, 9e12);
  EXPECT_EQ(busy.instructions[1].per_second, 2e13);
  EXPECT_EQ(busy.flops_per_second.at(DType::fp32), 1e12);
  EXPECT_EQ(busy.flops_per_second.at(DType::bf16), 9e12);
  EXPECT_EQ(busy.copy[0].bytes_per_second, 2e12);
  EXPECT_EQ(busy.copy[1].bytes_per_second, 1e11);
}

TEST_F(PeaksCache, AFileOfAnEarlierFormIsMeasuredAnew) {
  machine_peaks(1);
  std::ifstream file(peaks_cache_path());
  nlohmann::json cache = nlohmann::json::parse(file);
  nlohmann::json& entry = cache.begin().value();
  entry.erase("instructions");
  entry["flops_per_second"].erase("int8");
  std::ofstream(peaks_cache_path()) << cache;
  const Peaks again = machine_peaks(1);
  EXPECT_FALSE(again.instructions.empty());
  EXPECT_GT(again.flops_per_second.at(DType::int8), 0);
}

TEST_F(PeaksCache, ReleasesDoNotTakeThoseOfOtherBuilds) {
#ifdef NDEBUG
  constexpr bool kRelease = true;
#else
  constexpr bool kRelease = false;
#endif
  machine_peaks(1);
  std::ifstream file(peaks_cache_path());
  const nlohmann::json cache = nlohmann::json::parse(file);
  EXPECT_EQ(cache.begin().key().find("no release") == std::string::npos, kRelease);
}

TEST_F(PeaksCache, AFileThatMakesNoSenseIsReplaced) {
  std::filesystem::create_directories(folder_);
  std::ofstream(peaks_cache_path()) << "{\"half";
  const Peaks measured = machine_peaks(1);
  EXPECT_GT(measured.memory_bytes_per_second(), 0);
  EXPECT_EQ(machine_peaks(1).flops_per_second, measured.flops_per_second);
}

}  // namespace
}  // namespace strobe::lab
