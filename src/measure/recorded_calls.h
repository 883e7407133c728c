#pragma once

#include <span>

#include "measure/counters.h"
#include "strobe/device_profile.h"
#include "strobe/implementation.h"
#include "strobe/trace.h"

namespace strobe::lab {

/// How often something is called to be looked at.
struct CallLimit {
  int calls = 1;       ///< at most, and at least one
  double seconds = 1;  ///< no further call is begun after this
};

/// What was seen of calls: the spans of the host's threads, and what the device did meanwhile.
struct RecordedCalls {
  Recording host{};
  DeviceActivity device{};  ///< empty on the CPU
};

/// Spans of planning these passes of the problem. The first time in a process that is with kernels
/// that are compiled or loaded, so it comes before anything is timed. Throws as planning does.
Recording record_plans(const Implementation& implementation, Problem problem,
                       std::span<const Pass> passes, const PlanOptions& options);

/// Calls these passes of the problem, each after one call that finds everything cold, and returns
/// what was seen of that: on a GPU with the time until the work is done. What watches a GPU is not
/// easily got rid of, so it comes after everything that is timed. Throws as running does.
RecordedCalls record_runs(const Implementation& implementation, Problem problem,
                          std::span<const Pass> passes, const PlanOptions& options,
                          const CallLimit& limit);

/// Calls these passes of the problem so often and does nothing else: for profilers that look from
/// outside. With `cold`, a GPU's caches are emptied before each call, as count_on_device does.
void call_only(const Implementation& implementation, Problem problem, std::span<const Pass> passes,
               const PlanOptions& options, int calls, bool cold);

/// Puts the plans before the runs. What lay between them is of no interest: the plans are moved to
/// end where the runs begin.
RecordedCalls with_plans(Recording plans, RecordedCalls runs);

struct CountedCalls {
  Counts counts{};  ///< of all calls together
  int calls = 0;
};

/// What the processor counts while the problem's pass is called, after a first call.
CountedCalls count_calls(const Implementation& implementation, const Problem& problem,
                         const PlanOptions& options, const CallLimit& limit,
                         const OpenCounter& open = open_perf_counter);

/// What the implementation's device counts of a call that finds the device's caches cold, after a
/// first call.
DeviceCounts count_on_device(const Implementation& implementation, const Problem& problem,
                             const PlanOptions& options);

}  // namespace strobe::lab
