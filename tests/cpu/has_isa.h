#pragma once

#include <algorithm>
#include <string_view>

#include "cpu/isa.h"

namespace strobe::cpu {

/// Whether this machine runs the instruction set of that name.
inline bool has_isa(std::string_view name) {
  return std::ranges::any_of(isas(), [name](const Isa& isa) {
    return std::string_view(isa.kernels->name) == name && isa.runs_here();
  });
}

}  // namespace strobe::cpu
