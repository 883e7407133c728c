#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "measure/sampler.h"
#include "report/record.h"
#include "workload/setting.h"

namespace CLI {
class App;
}

// Options that several subcommands have in common.
namespace strobe::cli {

/// Where results go: a table for people, and records if asked for.
struct OutputOptions {
  std::string json{};
  bool force = false;

  void add_to(CLI::App& command);

  lab::RecordWriter records() const { return {json, force}; }

  /// Records on the standard output must not be mixed with anything else.
  std::FILE* text() const { return json == "-" ? stderr : stdout; }
};

/// How long to measure, and from which caches.
struct SamplingOptions {
  int repeats = 0;  ///< 0: until the median is known well enough
  double target_percent = 1;
  double budget_s = 5;
  std::string cache = "warm";

  void add_to(CLI::App& command);

  lab::SamplingPolicy policy() const;
};

/// One problem, by its text form, by the name of a preset or by the settings of either.
struct ProblemOptions {
  std::vector<std::string> problems{};
  std::string preset{};
  lab::SettingValues settings{};

  /// With `several`, --problem may be repeated.
  void add_to(CLI::App& command, bool several);

  /// Whether anything was said; if not, `choose` has the default problem.
  bool given() const { return !(problems.empty() && preset.empty() && settings.empty()); }

  std::vector<Problem> choose() const;
};

}  // namespace strobe::cli
