#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace strobe::lab {

double quantile(std::span<const double> sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
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
          .stddev = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

}  // namespace strobe::lab
