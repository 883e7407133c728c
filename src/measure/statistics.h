#pragma once

#include <optional>
#include <span>

namespace strobe::lab {

struct Interval {
  double low = 0, high = 0;
};

struct Statistics {
  double min = 0, mean = 0, max = 0;
  double median = 0, p95 = 0;
  double stddev = 0;               ///< of the sample; 0 for a single value
  std::optional<Interval> ci95{};  ///< of the median

  /// Half the width of the interval in medians; infinite where there is none.
  double relative_uncertainty() const;
};

/// All zero for no samples.
Statistics summarize(std::span<const double> samples);

/// The value that a fraction `p` of the sorted samples lies below, interpolated between
/// neighbours.
double quantile(std::span<const double> sorted, double p);

/// Two of the samples between which that quantile of what they were drawn from lies with at least
/// 95 % confidence, whatever its distribution: the number of samples below it is binomial. Too few
/// samples cannot tell: the median needs 6, a tenth 36.
std::optional<Interval> quantile_interval(std::span<const double> sorted, double p);

}  // namespace strobe::lab
