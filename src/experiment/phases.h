#pragma once

#include <string>
#include <vector>

#include "strobe/trace.h"

namespace strobe::lab {

/// What the threads of the CPU do together before the next step begins: what a kernel is on a GPU.
struct PhaseTime {
  std::string name{};
  double ms = 0;
};

/// Those of the last call in a recording of record_runs, in their order; none of work on a GPU.
std::vector<PhaseTime> phases_of_a_call(const Recording& recording);

}  // namespace strobe::lab
