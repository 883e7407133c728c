#include "measure/host_state.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "measure/resident.h"

namespace strobe::lab {
namespace {

/// Of a machine that scales its clocks: kilohertz, in a file for each core.
std::optional<int> scaled_clock_mhz(const std::string& cpus) {
  std::optional<int> fastest;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(cpus, none)) {
    std::ifstream file(folder.path() / "cpufreq" / "scaling_cur_freq");
    long long kilohertz = 0;
    if (file >> kilohertz)
      fastest = std::max(fastest.value_or(0), static_cast<int>(kilohertz / 1000));
  }
  return fastest;
}

/// Lines such as "cpu MHz : 2449.998", which x86 has.
std::optional<int> listed_clock_mhz(const std::string& cpuinfo) {
  std::optional<int> fastest;
  std::ifstream file(cpuinfo);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with("cpu MHz") || colon == std::string::npos) continue;
    fastest = std::max(fastest.value_or(0), std::atoi(line.c_str() + colon + 1));
  }
  return fastest;
}

}  // namespace

std::optional<int> core_clock_mhz(const std::string& cpus, const std::string& cpuinfo) {
  const std::optional<int> scaled = scaled_clock_mhz(cpus);
  return scaled ? scaled : listed_clock_mhz(cpuinfo);
}

DeviceState host_state() {
  return {.clock_mhz = core_clock_mhz("/sys/devices/system/cpu", "/proc/cpuinfo"),
          .memory_used_bytes = resident_bytes()};
}

}  // namespace strobe::lab
