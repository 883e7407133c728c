#pragma once

#include <string>

#include "strobe/accelerator.h"

namespace strobe::lab {

/// The CPU in the words of a device: the clock of its fastest core, where the system tells, and the
/// memory that this process occupies.
DeviceState host_state();

/// The same from other folders than the system's, for tests: `cpus` has a folder for each core,
/// `cpuinfo` is a file.
std::optional<int> core_clock_mhz(const std::string& cpus, const std::string& cpuinfo);

}  // namespace strobe::lab
