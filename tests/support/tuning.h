#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "strobe/implementation.h"

namespace strobe::test {

/// What a plan tells of `name`; "" if nothing.
inline std::string tuning_of(const Plan& plan, std::string_view name) {
  const auto found = std::find_if(plan.tuning.begin(), plan.tuning.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == plan.tuning.end() ? "" : found->second;
}

}  // namespace strobe::test
