#include "cli/profile_variables.h"

#include <cstdlib>
#include <string>

#include "strobe/error.h"

namespace strobe::cli {
namespace {

struct Variable {
  const char* name;
  const char* setting;
};

constexpr Variable kVariables[] = {
    {"BATCH", "batch"}, {"SEQLEN", "seqlen"}, {"NHEADS", "nheads"}, {"HEADDIM", "headdim"}};

/// By itself, so that what is wrong is said of it and not of an option.
void check(const Variable& variable, const std::string& value) {
  try {
    lab::make_problem({{variable.setting, value}});
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    throw InvalidArgument(variable.name, what.substr(error.field().size() + 1));
  }
}

}  // namespace

void take_variables(ProblemOptions& options) {
  if (!options.problem.empty() || !options.preset.empty()) return;
  for (const Variable& variable : kVariables) {
    const char* const value = std::getenv(variable.name);
    if (value == nullptr || *value == '\0' || options.settings.contains(variable.setting)) continue;
    check(variable, value);
    options.settings[variable.setting] = value;
  }
}

}  // namespace strobe::cli
