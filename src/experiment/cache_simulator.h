#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "experiment/traffic.h"

namespace strobe::lab {

/// A cache that keeps the lines that were used last, wherever they lie, and writes back what was
/// changed when it has to go. A line that is written is written as a whole, so nothing is read for
/// it.
class CacheSimulator {
 public:
  static constexpr std::int64_t kLineBytes = 64;

  explicit CacheSimulator(std::int64_t bytes);

  /// Every line of `bytes` from an address on.
  void read(std::int64_t address, std::int64_t bytes);
  void write(std::int64_t address, std::int64_t bytes);

  /// What has moved between the cache and memory, with what is still to be written back.
  Traffic traffic() const;

 private:
  struct Line {
    std::int64_t number = 0;
    bool changed = false;
  };
  using Lines = std::list<Line>;  // the latest first

  /// The line, in the cache by now; `fetched` says whether it had to come from memory.
  Line& use(std::int64_t number, bool& fetched);

  std::size_t room_;
  Lines lines_{};
  std::unordered_map<std::int64_t, Lines::iterator> places_{};
  std::int64_t lines_read_ = 0, lines_written_ = 0;
};

}  // namespace strobe::lab
