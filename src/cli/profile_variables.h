#pragma once

#include "cli/options.h"

namespace strobe::cli {

/// Takes sizes that were not given as options from the environment: BATCH, SEQLEN, NHEADS and
/// HEADDIM. A problem that is given whole, or by a preset, leaves nothing to take. Throws
/// InvalidArgument naming the variable.
void take_variables(ProblemOptions& options);

}  // namespace strobe::cli
