#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "measure/benchmark.h"
#include "measure/peaks.h"
#include "strobe/implementation.h"

// What several subcommands need.
namespace strobe::cli {

using Implementations = std::vector<const Implementation*>;

/// Those that support any of the problems, planned so; all of them if none does, so that each can
/// say why.
Implementations useful_among(const Implementations& implementations,
                             const std::vector<Problem>& problems, const PlanOptions& options);

/// Says on the standard error what kept the clocks of a GPU down while something was timed.
void warn_of_slowdown(const lab::Benchmark& result);

/// Says there if the result is faster than the peak that it is held against.
void warn_of_low_peak(const lab::Benchmark& result, const lab::Peaks& peaks);

/// "40 s", "12 min", "3.5 h": how long something takes, about.
std::string duration_text(double seconds);

/// A bar on the terminal that says how far the work is and how long it will take; nothing where
/// the standard error is not a terminal.
class Progress {
 public:
  /// Items that take about as long each.
  explicit Progress(std::size_t total, bool wanted = true);
  /// Items by the seconds that each is thought to take; what is left is corrected by the pace at
  /// which they are done.
  explicit Progress(std::vector<double> seconds);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Before item `done` is begun.
  void show(std::size_t done, const std::string& what);
  void clear();

  /// Whether anything is shown at all.
  bool visible() const { return visible_; }

 private:
  Progress(std::vector<double> weights, bool in_seconds);

  std::vector<double> weights_;
  bool in_seconds_;  ///< otherwise only how the weights compare is known
  bool visible_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace strobe::cli
