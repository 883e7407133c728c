#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/multiprocessor.h"

// Registers, spills and shared memory of a kernel's variants, how many blocks of each a
// multiprocessor holds, and, where there is a GPU, what that has to do with speed.
namespace strobe::lab {

/// One way to compile a kernel.
struct OccupancyRow {
  std::string name{};
  CompiledKernel compiled{};
  Residency residency{};
  std::optional<Benchmark> timed{};

  double ms() const { return timed ? timed->measurement.ms.median : 0; }
};

// The rules. The first row is that of the variant that is usually taken.
Expectation the_usual_does_not_spill(const std::vector<OccupancyRow>& rows);
Expectation occupancy_is_low(const std::vector<OccupancyRow>& rows);
Expectation speed_is_not_occupancy(const std::vector<OccupancyRow>& rows);

}  // namespace strobe::lab
