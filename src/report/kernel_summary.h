#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/device_profile.h"
#include "strobe/trace.h"

namespace strobe::lab {

/// All spans, or all work of a device, of one name.
struct KernelRow {
  std::string_view category{}, name{};
  std::int64_t calls = 0;
  double total_ms = 0;  ///< with the spans within them
  double self_ms = 0;   ///< without

  double mean_ms() const { return total_ms / static_cast<double>(calls); }
};

/// The one with the most time of its own first. The names are those of what they are rows of.
std::vector<KernelRow> kernel_rows(const Recording& recording);
std::vector<KernelRow> kernel_rows(const DeviceActivity& activity);

/// Name, calls, total, mean, and the part of all of their time that is its own.
std::string kernel_summary(const std::vector<KernelRow>& rows);

/// Of the time that the threads of a plan had while it was executed on the CPU, the part in which
/// they worked: 1 if none ever waited. 0 if nothing was executed there.
double busy_part(const Recording& recording, int threads);

}  // namespace strobe::lab
