#include "report/device_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/device_metrics.h"
#include "report/device_text.h"
#include "report/table.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

using Unit = DeviceMetric::Unit;

/// A C++ name without its parameters, and no longer than a column can be.
std::string short_name(const std::string& name) {
  constexpr std::size_t kMost = 40;
  const std::string plain = name.substr(0, name.find('('));
  return plain.size() <= kMost ? plain : plain.substr(0, kMost - 3) + "...";
}

}  // namespace

std::optional<double> DeviceMetric::of_call(const DeviceCounts& counts) const {
  return unit == Unit::percent ? average(counts, name) : total(counts, name);
}

std::string DeviceMetric::text(double value) const {
  switch (unit) {
    case Unit::bytes:
      return bytes_text(std::llround(value));
    case Unit::percent:
      return fmt::format("{:.1f} %", value);
    case Unit::time:
      return fmt::format("{:.1f} us", value / 1e3);
    case Unit::number:
      break;
  }
  return fmt::format("{:.4g}", value);
}

std::vector<DeviceMetric> memory_counters() {
  return {{metric::kDramRead, "read from DRAM:", "DRAM read", Unit::bytes},
          {metric::kDramWritten, "written to DRAM:", "DRAM written", Unit::bytes},
          {metric::kDramBusy, "DRAM, of its peak:", "DRAM", Unit::percent},
          {metric::kL2HitRate, "found in the L2 cache:", "L2 hits", Unit::percent},
          {metric::kBankConflicts, "bank conflicts of shared memory:", "Conflicts", Unit::number}};
}

std::vector<DeviceMetric> compute_counters() {
  return {{metric::kTime, "time of the kernels:", "Time", Unit::time},
          {metric::kSmActive, "multiprocessors with work:", "SM active", Unit::percent},
          {metric::kSmThroughput, "multiprocessors, of their peak:", "SM", Unit::percent},
          {metric::kTensorBusy, "tensor cores, of their peak:", "Tensor", Unit::percent},
          {metric::kTensorInstructions, "tensor instructions:", "Tensor inst.", Unit::number},
          {metric::kIssueBusy, "cycles that issue an instruction:", "Issue", Unit::percent},
          {metric::kOccupancy, "warps there, of the most:", "Occupancy", Unit::percent}};
}

std::string kernel_counters_text(const DeviceCounts& counts,
                                 const std::vector<DeviceMetric>& metrics) {
  std::vector<Table::Column> columns{{"Kernel"}, {"Grid"}, {"Block"}};
  for (const char* title : {"Registers", "Local bytes", "Shared"})
    columns.push_back({title, Align::right});
  for (const DeviceMetric& each : metrics) columns.push_back({each.brief, Align::right});
  Table table(columns);
  for (const CountedKernel& kernel : counts.kernels) {
    const KernelLaunch& launch = kernel.launch;
    std::vector<std::string> row{
        short_name(kernel.name),
        extent_text(launch.grid),
        extent_text(launch.block),
        std::to_string(launch.registers),
        std::to_string(launch.local_bytes),
        bytes_text(launch.static_shared_bytes + launch.dynamic_shared_bytes)};
    const DeviceCounts alone{.metrics = counts.metrics, .kernels = {kernel}};
    for (const DeviceMetric& each : metrics) {
      const auto value = each.of_call(alone);
      row.push_back(value ? each.text(*value) : "-");
    }
    table.add_row(std::move(row));
  }
  return table.render();
}

std::string stalls_text(const DeviceCounts& counts) {
  constexpr std::size_t kMost = 8;
  const std::vector<Stall> all = stalls(counts);
  if (all.empty()) return "";
  Table table({{"Warps wait for"}, {"Of their time", Align::right}});
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i)
    table.add_row({all[i].reason, fmt::format("{:.1f} %", 100 * all[i].part)});
  const std::vector<std::string> unknown = unknown_stalls(counts);
  const std::string lacks =
      unknown.empty() ? ""
                      : fmt::format("This GPU does not tell how long warps wait for: {}.\n",
                                    fmt::join(unknown, ", "));
  return "\n" + table.render() + lacks;
}

}  // namespace strobe::lab
