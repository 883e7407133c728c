#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "strobe/problem.h"

namespace strobe::lab {

/// One property of a problem as tools let people set it: --seqlen 4096, --dtype bf16. The tools
/// take the same settings: one value each for `bench` and `compare`, a list of them for `sweep`.
struct Setting {
  std::string_view name;   ///< "seqlen"
  std::string_view alias;  ///< another spelling, "seq_len", or ""
  std::string_view value;  ///< what a value looks like, "N"
  std::string_view help;
  std::string_view field;  ///< what Problem::validate calls it
  /// Throws InvalidArgument naming the option, the value and what is allowed.
  void (*apply)(Problem& problem, const std::string& value);

  /// "--seqlen,--seq_len": every spelling of its option.
  std::string flags() const;
};

/// In the order in which they are to be applied: a layout packs what the sizes before it say.
std::span<const Setting> settings();

/// Values by the names of their settings.
using SettingValues = std::map<std::string, std::string, std::less<>>;

/// What is benchmarked if nothing else is said.
Problem default_problem();

/// `base` with these values set, valid. Throws InvalidArgument naming the option.
Problem make_problem(const SettingValues& values, const Problem& base = default_problem());

}  // namespace strobe::lab
