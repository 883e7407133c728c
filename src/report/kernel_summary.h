#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/trace.h"

namespace strobe::lab {

/// All spans of one name.
struct KernelRow {
  std::string_view category{}, name{};
  std::int64_t calls = 0;
  double total_ms = 0;  ///< with the spans within them
  double self_ms = 0;   ///< without

  double mean_ms() const { return total_ms / static_cast<double>(calls); }
};

/// The one with the most time of its own first.
std::vector<KernelRow> kernel_rows(const Recording& recording);

/// Name, calls, total, mean, and the part of all recorded time that is its own.
std::string kernel_summary(const Recording& recording);

/// Of the time that the threads of a plan had while it was executed on the CPU, the part in which
/// they worked: 1 if none ever waited. 0 if nothing was executed there.
double busy_part(const Recording& recording, int threads);

}  // namespace strobe::lab
