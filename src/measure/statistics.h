#pragma once

#include <span>

namespace strobe::lab {

struct Statistics {
  double min = 0, mean = 0, max = 0;
  double median = 0, p95 = 0;
  double stddev = 0;  ///< of the sample; 0 for a single value
};

/// All zero for no samples.
Statistics summarize(std::span<const double> samples);

/// The value that a fraction `p` of the sorted samples lies below, interpolated between
/// neighbours.
double quantile(std::span<const double> sorted, double p);

}  // namespace strobe::lab
