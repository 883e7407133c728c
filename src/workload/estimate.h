#pragma once

#include <cstdint>
#include <span>

#include "workload/sweep.h"

namespace strobe::lab {

/// How fast a machine is and how long a point is measured: all that an estimate is made from.
struct Pace {
  double flops_per_second = 0;  ///< the machine's FMA rate
  double budget_s = 1;          ///< what a point may take if its runs are short
  int least_runs = 5;           ///< of a point, however long they are
  int most_runs = 32;
};

/// Seconds that measuring a point will take, checks included: an order of magnitude, from the FLOPs
/// of its runs and a fraction of the FMA rate.
double estimated_seconds(const Point& point, const Pace& pace);
double estimated_seconds(std::span<const Point> points, const Pace& pace);

/// The smallest of 1, 2, 4, 8, ... by which sequences must be shortened so that the grids take at
/// most `limit_s` seconds and their operands at most `available` bytes (0: not known). Where none
/// is enough, the largest that divides every length and leaves none below 16.
std::int64_t fitting_shrink(std::span<const Grid> grids, const Pace& pace, std::int64_t available,
                            double limit_s);

}  // namespace strobe::lab
