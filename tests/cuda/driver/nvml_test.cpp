#include "cuda/driver/nvml.h"

#include <gtest/gtest.h>

#include "support/environment.h"

namespace strobe::cuda::driver {
namespace {

using Reasons = std::vector<std::string>;

TEST(Nvml, ReadsTheGpuAtItsPlaceOnTheBus) {
  const strobe::test::ScopedVariable chosen("STROBE_NVML", STROBE_FAKE_NVML);
  const DeviceState state = Sensors("0000:01:00.0").read();
  EXPECT_EQ(state.clock_mhz, 1755);
  EXPECT_EQ(state.memory_clock_mhz, 3201);
  EXPECT_EQ(state.power_w, 612.5);
  EXPECT_EQ(state.memory_used_bytes, 3'000'000'000);
  EXPECT_EQ(state.slowed_by, Reasons{"power cap"});
  EXPECT_FALSE(state.temperature_c) << "a sensor that it lacks is absent, and the others are not";
}

TEST(Nvml, ReadsHowAGpuIsSetUp) {
  const strobe::test::ScopedVariable chosen("STROBE_NVML", STROBE_FAKE_NVML);
  const DeviceSettings settings = Sensors("0000:01:00.0").read_settings();
  EXPECT_EQ(settings.most_clock_mhz, 1980);
  EXPECT_EQ(settings.most_memory_clock_mhz, 3201);
  EXPECT_EQ(settings.power_limit_w, 500.0);
  EXPECT_EQ(settings.usual_power_limit_w, 700.0);
  EXPECT_EQ(settings.persistent, false);
  ASSERT_EQ(settings.processes.size(), 2u) << "this process is none of the others";
  EXPECT_EQ(settings.processes[0].id, 1);
  EXPECT_EQ(settings.processes[0].memory_bytes, 2'000'000'000);
  EXPECT_FALSE(settings.processes[1].memory_bytes) << "which NVML does not know";
}

TEST(Nvml, TellsOfEveryProcessHoweverManyThereAre) {
  const strobe::test::ScopedVariable chosen("STROBE_NVML", STROBE_FAKE_NVML);
  for (const std::size_t others : {0, 63, 64, 500}) {
    const strobe::test::ScopedVariable there("STROBE_FAKE_PROCESSES",
                                             std::to_string(others).c_str());
    EXPECT_EQ(Sensors("0000:01:00.0").read_settings().processes.size(), others);
  }
}

TEST(Nvml, TellsNothingOfAGpuThatItDoesNotKnow) {
  const strobe::test::ScopedVariable chosen("STROBE_NVML", STROBE_FAKE_NVML);
  const DeviceSettings settings = Sensors("0000:7f:00.0").read_settings();
  EXPECT_FALSE(settings.most_clock_mhz || settings.power_limit_w || settings.persistent);
  EXPECT_TRUE(settings.processes.empty());
  const DeviceState state = Sensors("0000:7f:00.0").read();
  EXPECT_FALSE(state.clock_mhz || state.power_w || state.memory_used_bytes);
  EXPECT_TRUE(state.slowed_by.empty());
}

TEST(Nvml, TellsNothingWhereItIsNotThere) {
  for (const char* library : {"/no/such/nvml.so", "libm.so.6"}) {
    const strobe::test::ScopedVariable chosen("STROBE_NVML", library);
    const DeviceState state = Sensors("0000:01:00.0").read();
    EXPECT_FALSE(state.clock_mhz || state.memory_clock_mhz || state.power_w ||
                 state.temperature_c || state.memory_used_bytes);
    EXPECT_TRUE(state.slowed_by.empty());
  }
}

TEST(Nvml, BeingIdleIsNoReason) {
  EXPECT_EQ(clock_reasons(0), Reasons{});
  EXPECT_EQ(clock_reasons(0x1), Reasons{});
  EXPECT_EQ(clock_reasons(0x4 | 0x40 | 0x1), (Reasons{"power cap", "heat (hardware)"}));
  EXPECT_EQ(clock_reasons(0x1FF).size(), 8u);
}

}  // namespace
}  // namespace strobe::cuda::driver
