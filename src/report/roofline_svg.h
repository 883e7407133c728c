#pragma once

#include <span>
#include <string>

#include "measure/peaks.h"

namespace strobe::lab {

/// A result under the roof.
struct RooflinePoint {
  std::string label{};
  double intensity = 0;  ///< FLOPs for each byte
  double flops_per_second = 0;
};

/// A picture that needs no other file: rate against intensity on log axes, the slopes of the memory
/// and of the fastest cache, the ceilings of the dtypes, and the points.
std::string roofline_svg(const Peaks& peaks, std::span<const RooflinePoint> points,
                         const std::string& title);

}  // namespace strobe::lab
