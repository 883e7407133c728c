#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace strobe::lab {
namespace {

/// The largest k such that k or fewer of n samples lie below a quantile p in at most 2.5 % of all
/// cases; -1 if there is none.
std::int64_t rare_below(std::size_t n, double p) {
  const auto count = static_cast<double>(n);
  double log_term = count * std::log1p(-p);  // of the probability of exactly k, from k = 0
  double cumulative = 0;
  for (std::size_t k = 0; k <= n; ++k) {
    cumulative += std::exp(log_term);
    if (cumulative > 0.025) return static_cast<std::int64_t>(k) - 1;
    const auto below = static_cast<double>(k);
    log_term += std::log((count - below) / (below + 1)) + std::log(p / (1 - p));
  }
  return static_cast<std::int64_t>(n);
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

std::optional<Interval> quantile_interval(std::span<const double> sorted, double p) {
  const std::int64_t below = rare_below(sorted.size(), p);
  const std::int64_t above = rare_below(sorted.size(), 1 - p);  // the same, from the other end
  if (below < 0 || above < 0) return std::nullopt;
  return Interval{sorted[static_cast<std::size_t>(below)],
                  sorted[sorted.size() - 1 - static_cast<std::size_t>(above)]};
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
          .p95 = quantile(sorted, 0.95),
          .stddev = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0,
          .ci95 = quantile_interval(sorted, 0.5)};
}

}  // namespace strobe::lab
