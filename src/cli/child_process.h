#pragma once

#include <string>
#include <vector>

namespace strobe::cli {

/// What became of another program.
struct ChildOutcome {
  int status = 0;          ///< as the shell would say it; -1 if it did not begin
  bool timed_out = false;  ///< and was ended
  std::string output{};    ///< what it printed, errors among it
};

/// Runs a program, which is looked for on the PATH, with these arguments, and ends it, with
/// everything that it started, if it has not ended after so many seconds.
ChildOutcome run_child(const std::vector<std::string>& arguments, double seconds);

}  // namespace strobe::cli
