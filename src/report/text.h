#pragma once

#include <cstdint>
#include <string>

#include "strobe/implementation.h"

namespace strobe::lab {

/// "12.6 MB"; decimal units.
std::string bytes_text(std::int64_t bytes);

/// An error as people read it: "2.4e-07", "0" where there is none.
std::string error_text(double error);

/// "isa avx2, threads 2": the tuning record on one line.
std::string tuning_text(const TuningRecord& tuning);

/// "flash: why it did not work", the name once.
std::string reason_text(const std::string& implementation, const std::string& reason);

}  // namespace strobe::lab
