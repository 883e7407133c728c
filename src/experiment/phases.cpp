#include "experiment/phases.h"

namespace strobe::lab {

std::vector<PhaseTime> phases_of_a_call(const Recording& recording) {
  std::vector<PhaseTime> phases;
  for (const RecordedThread& thread : recording) {
    std::int64_t call_end = -1;
    for (const RecordedSpan& span : thread.spans) {
      if (span.category == "laboratory" && span.name == "call") {
        phases.clear();
        call_end = span.end_ns;
      }
      // Only the thread that calls has calls, and it takes part in every phase.
      if (span.category == "cpu" && span.end_ns <= call_end)
        phases.push_back(
            {std::string(span.name), static_cast<double>(span.end_ns - span.begin_ns) / 1e6});
    }
  }
  return phases;
}

}  // namespace strobe::lab
