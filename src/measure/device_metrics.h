#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/device_profile.h"

// Of all that an NVIDIA GPU can count, what a profile wants to know. The names are those of Nsight
// Compute, so that both can be compared.
namespace strobe::lab {

namespace metric {
inline constexpr const char* kTime = "gpu__time_duration.sum";
inline constexpr const char* kDramRead = "dram__bytes_read.sum";
inline constexpr const char* kDramWritten = "dram__bytes_write.sum";
inline constexpr const char* kDramBusy = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr const char* kL2HitRate = "lts__t_sector_hit_rate.pct";
inline constexpr const char* kSmActive = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr const char* kSmThroughput = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr const char* kTensorBusy =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr const char* kTensorInstructions = "sm__inst_executed_pipe_tensor.sum";
inline constexpr const char* kIssueBusy = "smsp__issue_active.avg.pct_of_peak_sustained_active";
inline constexpr const char* kOccupancy = "sm__warps_active.avg.pct_of_peak_sustained_active";
inline constexpr const char* kBankConflicts = "l1tex__data_bank_conflicts_pipe_lsu.sum";
}  // namespace metric

/// All of the above, and what warps wait for.
std::vector<std::string> device_metrics();

/// Over the kernels of a call; nothing if it was not counted.
std::optional<double> total(const DeviceCounts& counts, std::string_view metric);

/// Each kernel counts by the time it took.
std::optional<double> average(const DeviceCounts& counts, std::string_view metric);

/// Something that warps wait for before their next instruction.
struct Stall {
  std::string reason{};  ///< "long scoreboard"
  double part = 0;       ///< of the time that all warps are there
};

/// The longest first.
std::vector<Stall> stalls(const DeviceCounts& counts);

/// Reasons that were asked for, and that the device does not tell.
std::vector<std::string> unknown_stalls(const DeviceCounts& counts);

}  // namespace strobe::lab
