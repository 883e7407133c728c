#pragma once

#include <string>
#include <vector>

#include "strobe/accelerator.h"

namespace strobe::lab {

/// "1755 of 1980 MHz, memory 3201 of 3201 MHz"; "" if the device does not tell.
std::string clocks_text(const DeviceState& state, const DeviceSettings& settings);

/// "612 of 700 W"; likewise.
std::string power_text(const DeviceState& state, const DeviceSettings& settings);

/// What on a device makes times worse or unsteady, a sentence each that ends in what to do about
/// it. Commands are there to be read: nobody here runs them.
std::vector<std::string> device_remarks(int index, const DeviceState& state,
                                        const DeviceSettings& settings);

}  // namespace strobe::lab
