#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace strobe::lab {
namespace {

/// How many of the lowest and of the highest of n samples can be left out so that the median still
/// lies between the rest with 95 % confidence.
std::size_t samples_outside(std::size_t n) {
  double log_term = -static_cast<double>(n) * std::log(2.0);  // of C(n, k) / 2^n, k = 0
  double below = 0;
  std::size_t outside = 0;
  while (true) {
    below += std::exp(log_term);
    if (2 * below > 0.05) return outside;
    const auto k = static_cast<double>(outside);
    log_term += std::log((static_cast<double>(n) - k) / (k + 1));
    ++outside;
  }
}

}  // namespace

double Statistics::relative_uncertainty() const {
  if (!ci95 || median <= 0) return std::numeric_limits<double>::infinity();
  return (ci95->high - ci95->low) / 2 / median;
}

double quantile(std::span<const double> sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
}

std::optional<Interval> median_interval(std::span<const double> sorted) {
  const std::size_t outside = samples_outside(sorted.size());
  if (outside == 0) return std::nullopt;
  return Interval{sorted[outside - 1], sorted[sorted.size() - outside]};
}

Statistics summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : sorted) squares += (sample - mean) * (sample - mean);
  return {.min = sorted.front(),
          .mean = mean,
          .max = sorted.back(),
          .median = quantile(sorted, 0.5),
          .p10 = quantile(sorted, 0.1),
          .p95 = quantile(sorted, 0.95),
          .stddev = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0,
          .ci95 = median_interval(sorted)};
}

}  // namespace strobe::lab
