#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "strobe/problem.h"

namespace strobe::lab {

/// A problem that people know by the name of a model or a use.
struct Preset {
  std::string_view name;
  std::string_view problem;  ///< its text form without a dtype
  bool inference = false;    ///< forward only
  std::string_view stands_for;
};

std::span<const Preset> presets();

/// Throws InvalidArgument listing the names there are.
const Preset& find_preset(std::string_view name);

/// The preset's problem in this dtype.
Problem problem_of(const Preset& preset, DType dtype);

/// What attention is used for, small enough for two cores: an encoder, a decoder's prefill, grouped
/// heads, a sliding window, packed sequences, a step of decoding, a training step.
std::vector<Problem> representative_problems();

}  // namespace strobe::lab
