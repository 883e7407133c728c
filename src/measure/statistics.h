#pragma once

#include <optional>
#include <span>

namespace strobe::lab {

struct Interval {
  double low = 0, high = 0;
};

struct Statistics {
  double min = 0, mean = 0, max = 0;
  double median = 0, p10 = 0, p95 = 0;
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

/// Two of the samples between which the median of what they were drawn from lies with at least
/// 95 % confidence, whatever its distribution: the number of samples below the median is binomial.
/// Fewer than six samples cannot tell.
std::optional<Interval> median_interval(std::span<const double> sorted);

}  // namespace strobe::lab
