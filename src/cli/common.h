#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "strobe/implementation.h"

// What several subcommands need.
namespace strobe::cli {

/// The implementations with these names. Throws InvalidArgument listing those there are.
std::vector<const Implementation*> find_implementations(const std::vector<std::string>& names);

/// A line on the terminal that says how far the work is and how long it will take; nothing where
/// the standard error is not a terminal.
class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Before item `done` is begun.
  void show(std::size_t done, const std::string& what);
  void clear();

 private:
  std::size_t total_;
  bool visible_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace strobe::cli
