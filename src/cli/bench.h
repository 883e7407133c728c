#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/benchmark.h"
#include "measure/peaks.h"

// `strobe bench`, for commands that have a part of it in theirs.
namespace strobe::cli {

struct BenchOptions {
  ProblemOptions problem{};
  SamplingOptions sampling{};
  PassOptions passes{};
  std::string implementation{};
  RunOptions run{};
  OutputOptions output{};
  std::optional<std::string> profile{};  ///< the file of a trace; "" is one by the problem's name
  int calls = 0;                         ///< only call so often, and time nothing; 0: time

  /// Everything that says what is timed, and how.
  void add_to(CLI::App& command);
};

/// What is timed.
struct BenchSubject {
  Problem problem{};  ///< with the last of the passes
  std::vector<Pass> passes{};
  const Implementation* implementation = nullptr;
};

/// Throws InvalidArgument, and Unsupported if nothing supports the problem.
BenchSubject choose_subject(const BenchOptions& options);

struct BenchOutcome {
  int status = 0;
  std::vector<lab::Benchmark> results{};  ///< by pass, until one failed
  lab::Peaks peaks{};                     ///< of the device
};

/// Time of one implementation on one problem, printed as it becomes known.
BenchOutcome bench(const BenchOptions& options);

}  // namespace strobe::cli
