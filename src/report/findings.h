#pragma once

#include <string>
#include <vector>

#include "report/profile.h"

namespace strobe::lab {

enum class Grade : std::uint8_t { good, fair, poor };

std::string_view name_of(Grade grade);

/// What a rule makes of a figure.
struct Finding {
  std::string subject{};  ///< "forward: rate"
  Grade grade = Grade::good;
  std::string figure{};  ///< "61 % of the measured peak"
  std::string rule{};    ///< with its thresholds
  std::string advice{};  ///< "" where there is nothing to do
};

/// Those of the rules that apply to the pass, in a fixed order.
std::vector<Finding> findings_of(const PassProfile& pass, const Peaks& peaks);

}  // namespace strobe::lab
