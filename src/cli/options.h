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
  bool quiet = false;
  std::FILE* instead = nullptr;  ///< of the standard output, for commands that run others

  void add_to(CLI::App& command);

  /// For commands whose records are enough.
  void add_quiet_to(CLI::App& command);

  lab::RecordWriter records() const { return {json, force}; }

  /// Records on the standard output must not be mixed with anything else.
  std::FILE* text() const;
};

/// How long to measure, and from which caches.
struct SamplingOptions {
  int repeats = 0;  ///< 0: until the median is known well enough
  double target_percent = 1;
  double budget_s = 5;
  std::string cache = "warm";
  std::string l2 = "rotate";
  bool no_pin = false;

  /// Without `with_target` the whole budget is spent.
  void add_to(CLI::App& command, bool with_target = true);

  /// --quick, after the others, for commands that go by `quick_policy` then.
  static void add_quick_to(CLI::App& command, bool& quick, const std::string& help);

  /// For results that are read at once: those kept to be compared are all of pinned threads.
  void add_pinning_to(CLI::App& command);

  lab::SamplingPolicy policy() const;

  /// Few samples, if it was not said how many: done in a moment.
  lab::SamplingPolicy quick_policy() const;
};

/// --threads, in every command that runs kernels. 0 is what STROBE_THREADS or the machine says.
void add_threads(CLI::App& command, int& threads);

/// One problem: by its text form, or by the name of a preset and settings.
struct ProblemOptions {
  std::string problem{};
  std::string preset{};
  lab::SettingValues settings{};

  void add_to(CLI::App& command);

  Problem choose(const Problem& base = lab::default_problem()) const;
};

/// Which passes of one problem: both, or what a preset stands for.
struct PassOptions {
  std::string pass{};
  bool no_grad = false;

  void add_to(CLI::App& command);

  std::vector<Pass> choose(const ProblemOptions& problem) const;
};

/// Several problems: by their text forms, or one by a preset and settings, or, if nothing is said,
/// a representative set.
struct ProblemSetOptions {
  std::vector<std::string> problems{};
  ProblemOptions one{};
  std::string pass{};  ///< "" is what each problem says

  void add_to(CLI::App& command);

  std::vector<Problem> choose() const;
};

}  // namespace strobe::cli
