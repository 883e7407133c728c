#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/benchmark.h"
#include "measure/peaks.h"

// `strobe compare`, for commands that have a part of it in theirs.
namespace strobe::cli {

struct CompareOptions {
  bool quick = false;
  ProblemSetOptions problems{};
  std::vector<std::string> implementations{};
  std::vector<std::string> also{};  ///< modes in which each is timed once more
  std::string base{};
  std::int64_t product = 0;  ///< rows of the matrices whose product takes turns with all; 0: none
  RunOptions run{};
  SamplingOptions sampling{.budget_s = 3};
  OutputOptions output{};
};

/// Rows of one problem, in the order of the implementations and, for each, of its modes.
using Results = std::vector<lab::Benchmark>;

/// Several implementations on the same problems, printed as they become known. Returns the results
/// of each problem.
std::vector<Results> compare(const CompareOptions& options);

/// What results are of, in words, with what they are held against: where these peaks are of.
std::string hardware_text(const lab::Peaks& peaks);

}  // namespace strobe::cli
