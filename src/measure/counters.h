#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace strobe::lab {

/// What the processor itself counts.
enum class Counter : std::uint8_t {
  cycles,
  instructions,
  cache_references,
  cache_misses,
  branch_misses
};

inline constexpr std::array kCounters{Counter::cycles, Counter::instructions,
                                      Counter::cache_references, Counter::cache_misses,
                                      Counter::branch_misses};

/// "cache misses"
std::string_view name_of(Counter counter);

/// Of all threads of the process together; what this machine does not count is absent.
struct Counts {
  std::array<std::optional<double>, kCounters.size()> values{};
  std::string refused{};  ///< a sentence that says why there are none, and what would change that

  std::optional<double> operator[](Counter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
};

/// Asks the kernel to count something in a thread and the threads that it starts, from now on.
/// Returns a file to read from, or minus the error number.
using OpenCounter = std::function<int(Counter counter, int thread)>;

/// By perf_event_open, of the program's own code and not of the kernel's.
int open_perf_counter(Counter counter, int thread);

/// Counts while `work` runs. Where there are fewer counters in the processor than are asked for,
/// the kernel lets them take turns, and what they missed is made up for in proportion.
Counts count(const std::function<void()>& work, const OpenCounter& open = open_perf_counter);

}  // namespace strobe::lab
