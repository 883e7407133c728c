#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "report/profile.h"

// NVIDIA's profilers around a process that calls the same problem.
namespace strobe::cli {

/// What they made of it.
struct ToolResults {
  std::vector<lab::ExternalTool> tools{};
  std::map<std::string, std::string> files{};  ///< contents by name
};

/// Every file that they may leave.
std::vector<std::string> tool_files();

/// Runs those that are on the PATH, each for less than half a minute. Whatever goes wrong with one
/// is said in its `trouble`.
ToolResults run_tools(const BenchOptions& options, const BenchSubject& subject);

/// Of the text that ncu prints of a report, for each kernel the sections whose titles have one of
/// these words in them.
std::string sections_of(const std::string& details, const std::vector<std::string>& words);

}  // namespace strobe::cli
