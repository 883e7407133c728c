#include "workload/estimate.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "measure/flops.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr double kSetUpSeconds = 0.01;
constexpr double kMostCheckSeconds = 1.5;
constexpr std::int64_t kShortest = 16;

// Fractions of the FMA rate, as measured on a few machines. What is slow on purpose is named; any
// other implementation is taken for a fast one.
constexpr double kBaselineFraction = 0.05;

double fraction_of(std::string_view implementation) {
  if (implementation == "oracle") return 0.002;
  return implementation == "standard" ? kBaselineFraction : 0.25;
}

std::vector<Point> points_of_shortened(std::span<const Grid> grids, std::int64_t by) {
  std::vector<Grid> shorter;
  for (const Grid& grid : grids) shorter.push_back(shortened(grid, by));
  return points_of(shorter);
}

bool can_shorten(std::span<const Grid> grids, std::int64_t by) {
  try {
    const std::vector<Point> points = points_of_shortened(grids, by);
    return std::all_of(points.begin(), points.end(),
                       [](const Point& p) { return p.problem.seqlen_q >= kShortest; });
  } catch (const InvalidArgument&) {  // a length that cannot be divided
    return false;
  }
}

}  // namespace

double estimated_seconds(const Point& point, const Pace& pace) {
  const double work = flops(point.problem);
  const double run = work / (pace.flops_per_second * fraction_of(point.implementation));
  const double runs =
      std::max(pace.least_runs * run, std::min(pace.budget_s, pace.most_runs * run));
  const double check = work / (pace.flops_per_second * kBaselineFraction);
  return kSetUpSeconds + runs + std::min(check, kMostCheckSeconds);
}

double estimated_seconds(std::span<const Point> points, const Pace& pace) {
  double seconds = 0;
  for (const Point& point : points) seconds += estimated_seconds(point, pace);
  return seconds;
}

std::int64_t fitting_shrink(std::span<const Grid> grids, const Pace& pace, std::int64_t available,
                            double limit_s) {
  for (std::int64_t by = 1;; by *= 2) {
    const std::vector<Point> points = points_of_shortened(grids, by);
    const bool fits =
        available == 0 || std::all_of(points.begin(), points.end(), [available](const Point& p) {
          return operand_bytes(p) <= available;
        });
    // Memory first: the FLOPs of lengths without bound take long to count.
    if (fits && estimated_seconds(points, pace) <= limit_s) return by;
    if (!can_shorten(grids, 2 * by)) return by;
  }
}

}  // namespace strobe::lab
