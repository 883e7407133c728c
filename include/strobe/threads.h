#pragma once

#include "strobe/export.h"

namespace strobe {

/// While on, each thread that computes keeps to a core of its own, the calling one included: for
/// measurements, where a migration costs more than what is measured. Takes the place of STROBE_PIN,
/// which decides until then: 1 is on, 0 or nothing off.
STROBE_API void pin_threads(bool on);

/// Whether threads are pinned. Throws InvalidArgument if that is for STROBE_PIN to say, and it is
/// neither 0 nor 1.
STROBE_API bool threads_pinned();

}  // namespace strobe
