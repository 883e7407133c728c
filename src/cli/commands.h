#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "report/record.h"
#include "verify/case.h"

// What the subcommands do. main.cpp reads their options from the command line.
namespace strobe::cli {

/// What the program's exit status means, and what every subcommand returns.
enum ExitStatus : int {
  kDone = 0,
  kCheckFailed = 1,  ///< inaccurate, misbehaving
  kWrongUsage = 2,
  kNotPossible = 3  ///< on this machine
};

/// Where results go: a table for people, and records if asked for.
struct OutputOptions {
  std::string json{};
  bool force = false;

  lab::RecordWriter records() const { return {json, force}; }

  /// Records on the standard output must not be mixed with anything else.
  std::FILE* text() const { return json == "-" ? stderr : stdout; }
};

/// This machine as strobe sees it, and what it can run.
int info();

struct ListOptions {
  std::string problem{};
};

/// Implementations and their features, or who supports a problem and why the others do not.
int list(const ListOptions& options);

struct VerifyOptions {
  std::string grid{};
  std::string share = "1/1";  ///< which part of the grid, of how many
  std::string problem{};
  std::string pass = "both";
  std::vector<std::string> implementations{};
  lab::Inputs inputs{};
  OutputOptions output{};
};

/// Accuracy of implementations against the oracle, on one problem or a grid of them.
int verify(const VerifyOptions& options);

struct BenchOptions {
  std::string problem{};
  std::int64_t batch = 2, seqlen = 1024, heads = 8, dim = 64;
  std::optional<std::int64_t> seqlen_k{}, heads_k{};
  bool causal = false;
  std::string dtype = "fp32";
  int repeats = 20;
  bool no_grad = false;
  std::string implementation{};
  int threads = 0;
  OutputOptions output{};
};

/// Time of one implementation on one problem.
int bench(const BenchOptions& options);

struct CompareOptions {
  bool quick = false;
  std::vector<std::string> problems{};
  std::vector<std::string> implementations{"flash", "standard"};
  OutputOptions output{};
};

/// Several implementations on the same problems.
int compare(const CompareOptions& options);

}  // namespace strobe::cli
