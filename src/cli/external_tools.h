#pragma once

#include <vector>

#include "report/profile.h"

namespace strobe::cli {

/// NVIDIA's profilers, what each would add to a profile, and where it is on the PATH.
std::vector<lab::ExternalTool> external_tools();

}  // namespace strobe::cli
