#pragma once

#include <string>

namespace CLI {
class App;
}

namespace strobe::cli {

/// Where a baseline lies: its records, and the library that they were measured with.
struct BaselineName {
  std::string name{};
  std::string folder{};

  void add_to(CLI::App& command);

  /// Throws InvalidArgument for a name that would not be a file of the folder.
  std::string records() const { return path(".jsonl"); }
  std::string library() const { return path(".libstrobe.so"); }

 private:
  std::string path(const std::string& ending) const;
};

void add_baseline_save(CLI::App& baseline, int& status);
void add_baseline_check(CLI::App& baseline, int& status);

}  // namespace strobe::cli
