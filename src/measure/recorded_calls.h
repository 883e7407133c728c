#pragma once

#include <span>

#include "measure/counters.h"
#include "strobe/implementation.h"
#include "strobe/trace.h"

namespace strobe::lab {

/// How often something is called to be looked at.
struct CallLimit {
  int calls = 1;       ///< at most, and at least one
  double seconds = 1;  ///< no further call is begun after this
};

/// Plans these passes of the problem and calls each, after one call that finds everything cold, and
/// returns the spans of all that: on a GPU with the time until the work is done. Throws as planning
/// and running do.
Recording record_calls(const Implementation& implementation, Problem problem,
                       std::span<const Pass> passes, const PlanOptions& options,
                       const CallLimit& limit);

struct CountedCalls {
  Counts counts{};  ///< of all calls together
  int calls = 0;
};

/// What the processor counts while the problem's pass is called, after a first call.
CountedCalls count_calls(const Implementation& implementation, const Problem& problem,
                         const PlanOptions& options, const CallLimit& limit,
                         const OpenCounter& open = open_perf_counter);

}  // namespace strobe::lab
