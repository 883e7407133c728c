#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "measure/benchmark.h"
#include "measure/peaks.h"

namespace strobe::lab {

/// "12.6 MB"; decimal units.
std::string bytes_text(std::int64_t bytes);

/// "12.6", under a title that has the unit.
std::string megabytes_text(double bytes);

/// An error as people read it: "2.4e-07", "0" where there is none.
std::string error_text(double error);

/// "isa avx2, threads 2": the tuning record on one line.
std::string tuning_text(const TuningRecord& tuning);

/// "flash: why it did not work", the name once.
std::string reason_text(const std::string& implementation, const std::string& reason);

/// Text as HTML and SVG show it, between tags.
std::string escape_html(std::string_view text);

/// "1755 MHz, memory 3201 MHz, 612 W, 58 C, 3.2 GB in use": as far as the device tells; "" if it
/// tells nothing.
std::string state_text(const DeviceState& state);

/// A sentence that says what kept the clocks of the result's device down while it was timed; "" if
/// nothing did.
std::string slowdown_text(const Benchmark& result);

/// The command that measures these peaks again: those of the CPU are kept by the number of threads.
std::string measuring_command(const Peaks& peaks);

/// A sentence that says so if the result is faster than the peak that was measured of its device,
/// which then was measured at a bad moment; else "".
std::string low_peak_text(const Benchmark& result, const Peaks& peaks);

}  // namespace strobe::lab
