#include "report/device_check.h"

#include <gtest/gtest.h>

namespace strobe::lab {
namespace {

const DeviceState kBusy{.clock_mhz = 1755, .memory_clock_mhz = 3201, .power_w = 612.4};
const DeviceSettings kFine{.most_clock_mhz = 1980,
                           .most_memory_clock_mhz = 3201,
                           .power_limit_w = 700,
                           .usual_power_limit_w = 700,
                           .persistent = true};

std::string only_remark(const DeviceState& state, const DeviceSettings& settings) {
  const auto remarks = device_remarks(2, state, settings);
  EXPECT_EQ(remarks.size(), 1u);
  return remarks.empty() ? "" : remarks.front();
}

TEST(DeviceCheck, ClocksAndPowerBesideTheMost) {
  EXPECT_EQ(clocks_text(kBusy, kFine), "1755 of 1980 MHz, memory 3201 of 3201 MHz");
  EXPECT_EQ(power_text(kBusy, kFine), "612 of 700 W");
  EXPECT_EQ(clocks_text({.clock_mhz = 1755}, {}), "1755 MHz");
  EXPECT_EQ(clocks_text({}, {.most_memory_clock_mhz = 3201}), "memory at most 3201 MHz");
  EXPECT_EQ(clocks_text({}, {}), "");
  EXPECT_EQ(power_text({}, {}), "");
}

TEST(DeviceCheck, NothingIsSaidOfADeviceThatIsFineOrTellsNothing) {
  EXPECT_TRUE(device_remarks(0, kBusy, kFine).empty());
  EXPECT_TRUE(device_remarks(0, {}, {}).empty());
}

TEST(DeviceCheck, SaysWhatToDoAboutEachTrouble) {
  DeviceSettings settings = kFine;
  settings.power_limit_w = 500;
  EXPECT_NE(only_remark(kBusy, settings).find("nvidia-smi -i 2 -pl 700"), std::string::npos);
  settings = kFine;
  settings.persistent = false;
  EXPECT_NE(only_remark(kBusy, settings).find("nvidia-smi -i 2 -pm 1"), std::string::npos);
  settings = kFine;
  settings.processes = {{.id = 77, .memory_bytes = 2'000'000'000}, {.id = 78}};
  EXPECT_NE(only_remark(kBusy, settings).find("process 77 (2.00 GB), 78,"), std::string::npos);
  DeviceState state = kBusy;
  state.slowed_by = {"clocks that were set"};
  EXPECT_NE(only_remark(state, kFine).find("nvidia-smi -i 2 -rgc"), std::string::npos);
  state.slowed_by = {"heat (hardware)"};
  EXPECT_NE(only_remark(state, kFine).find("cooling"), std::string::npos);
  state.slowed_by = {"power cap"};
  EXPECT_NE(only_remark(state, kFine).find("ratios"), std::string::npos);
}

}  // namespace
}  // namespace strobe::lab
