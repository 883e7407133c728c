#pragma once

#include "strobe/registry.h"

namespace strobe {

/// Adds every backend that this build contains, in order of preference.
void register_builtin_implementations(Registry& registry);

}  // namespace strobe
