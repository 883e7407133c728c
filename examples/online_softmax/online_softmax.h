#pragma once

#include "strobe/registry.h"

namespace strobe::online_softmax {

/// What the strobe_backend() line calls.
void register_implementations(Registry& registry);

}  // namespace strobe::online_softmax
