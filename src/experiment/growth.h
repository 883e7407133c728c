#pragma once

#include <cmath>
#include <utility>
#include <vector>

namespace strobe::lab {

/// The exponent with which a quantity grows: the slope of the straight line nearest to the points
/// on log axes. 0 for fewer than two points.
inline double growth_exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto count = static_cast<double>(points.size());
  for (const auto& [at, value] : points) {
    x += std::log(at) / count;
    y += std::log(value) / count;
  }
  for (const auto& [at, value] : points) {
    xx += (std::log(at) - x) * (std::log(at) - x);
    xy += (std::log(at) - x) * (std::log(value) - y);
  }
  return xx > 0 ? xy / xx : 0;
}

}  // namespace strobe::lab
