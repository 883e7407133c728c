#include "measure/repeated_calls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "measure/host_state.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::lab {
namespace {

TEST(RepeatedCalls, TimeRoundAfterRound) {
  for (const char* problem : {"sq32 h1 d16 fp32", "sq32 h1 d16 fp32 bwd"}) {
    RepeatedCalls calls(Registry::instance().find("flash"), Problem::parse(problem), {});
    for (int i = 0; i < 2; ++i) {
      const RepeatedCalls::Round round = calls.next(0.01);
      EXPECT_FALSE(round.measurement.samples_ms.empty());
      EXPECT_GT(round.flops_per_second, 0);
      EXPECT_GT(round.state.memory_used_bytes.value_or(1), 0);
    }
    EXPECT_FALSE(calls.plan().tuning.empty());
  }
}

TEST(RepeatedCalls, CallOnceAtLeast) {
  RepeatedCalls calls(Registry::instance().find("flash"), Problem::parse("sq32 h1 d16 fp32"), {});
  EXPECT_GE(calls.next(0).measurement.samples_ms.size(), 1u);
}

TEST(RepeatedCalls, RefuseWhatIsNotSupported) {
  EXPECT_THROW(RepeatedCalls(Registry::instance().find("flash"), Problem::parse("sq8 int8"), {}),
               Unsupported);
}

TEST(HostState, ReadsTheFastestCore) {
  const std::filesystem::path cpus = testing::TempDir() + "strobe_host_state";
  std::filesystem::remove_all(cpus);
  const std::string cpuinfo = cpus / "cpuinfo";
  for (const auto& [core, kilohertz] : {std::pair{"cpu0", 1200000}, std::pair{"cpu1", 2600000}}) {
    std::filesystem::create_directories(cpus / core / "cpufreq");
    std::ofstream(cpus / core / "cpufreq" / "scaling_cur_freq") << kilohertz << "\n";
  }
  EXPECT_EQ(core_clock_mhz(cpus, cpuinfo), 2600);
  for (const char* core : {"cpu0", "cpu1"}) std::filesystem::remove_all(cpus / core);
  EXPECT_EQ(core_clock_mhz(cpus, cpuinfo), std::nullopt);
  std::ofstream(cpuinfo) << "model name\t: some\ncpu MHz\t\t: 2449.998\n\ncpu MHz\t\t: 1500.0\n";
  EXPECT_EQ(core_clock_mhz(cpus, cpuinfo), 2449);
  EXPECT_EQ(core_clock_mhz("/no/such/folder", "/no/such/file"), std::nullopt);
}

}  // namespace
}  // namespace strobe::lab
