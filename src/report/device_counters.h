#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strobe/device_profile.h"

namespace strobe::lab {

/// A counter of a GPU, as people read it.
struct DeviceMetric {
  enum class Unit : std::uint8_t { bytes, percent, number, time };

  const char* name;   ///< NVIDIA's
  const char* words;  ///< "DRAM, of its peak:"
  const char* brief;  ///< for the head of a column
  Unit unit;

  /// Of all kernels of a call: the sum, or of a percentage the mean.
  std::optional<double> of_call(const DeviceCounts& counts) const;
  std::string text(double value) const;
};

std::vector<DeviceMetric> memory_counters();
std::vector<DeviceMetric> compute_counters();

/// Those of single kernels, a row each, with what the kernels were launched with.
std::string kernel_counters_text(const DeviceCounts& counts,
                                 const std::vector<DeviceMetric>& metrics);

/// What warps waited for; "" if that was not counted.
std::string stalls_text(const DeviceCounts& counts);

}  // namespace strobe::lab
