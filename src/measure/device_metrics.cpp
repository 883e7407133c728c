#include "measure/device_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace strobe::lab {
namespace {

/// As NVIDIA names them. "selected" is a warp that does not wait; gmma is known to Hopper alone,
/// imc_miss not to Blackwell.
constexpr std::array kReasons{"barrier",
                              "branch_resolving",
                              "dispatch_stall",
                              "drain",
                              "gmma",
                              "imc_miss",
                              "lg_throttle",
                              "long_scoreboard",
                              "math_pipe_throttle",
                              "membar",
                              "mio_throttle",
                              "misc",
                              "no_instruction",
                              "not_selected",
                              "selected",
                              "short_scoreboard",
                              "sleeping",
                              "tex_throttle",
                              "wait"};

std::string stall_metric(const char* reason) {
  return std::string("smsp__average_warps_issue_stalled_") + reason + "_per_issue_active.ratio";
}

std::string words_of(const char* reason) {
  std::string words = reason;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::optional<std::size_t> place_of(const DeviceCounts& counts, std::string_view metric) {
  const auto found = std::find(counts.metrics.begin(), counts.metrics.end(), metric);
  if (found == counts.metrics.end()) return std::nullopt;
  return static_cast<std::size_t>(found - counts.metrics.begin());
}

/// The sum of value times weight over the kernels; nothing if there is no value.
template <class Weight>
std::optional<double> weighted_sum(const DeviceCounts& counts, std::string_view metric,
                                   const Weight& weight) {
  const auto place = place_of(counts, metric);
  if (!place || counts.kernels.empty()) return std::nullopt;
  double sum = 0;
  for (const CountedKernel& kernel : counts.kernels) sum += kernel.values[*place] * weight(kernel);
  if (!std::isfinite(sum)) return std::nullopt;
  return sum;
}

}  // namespace

std::vector<std::string> device_metrics() {
  std::vector<std::string> all{
      metric::kTime,         metric::kDramRead,   metric::kDramWritten,
      metric::kDramBusy,     metric::kL2HitRate,  metric::kSmActive,
      metric::kSmThroughput, metric::kTensorBusy, metric::kTensorInstructions,
      metric::kIssueBusy,    metric::kOccupancy,  metric::kBankConflicts};
  for (const char* reason : kReasons) all.push_back(stall_metric(reason));
  return all;
}

std::optional<double> total(const DeviceCounts& counts, std::string_view metric) {
  return weighted_sum(counts, metric, [](const CountedKernel&) { return 1; });
}

std::optional<double> average(const DeviceCounts& counts, std::string_view metric) {
  const auto time = place_of(counts, metric::kTime);
  const auto time_of = [&](const CountedKernel& kernel) { return time ? kernel.values[*time] : 1; };
  double all = 0;
  for (const CountedKernel& kernel : counts.kernels) all += time_of(kernel);
  const auto sum = weighted_sum(counts, metric, time_of);
  if (!sum || !(all > 0)) return std::nullopt;
  return *sum / all;
}

std::vector<Stall> stalls(const DeviceCounts& counts) {
  std::vector<Stall> all;
  double warps = 0;
  for (const char* reason : kReasons) {
    const auto ratio = average(counts, stall_metric(reason));
    if (!ratio || *ratio <= 0) continue;
    warps += *ratio;
    std::string words = words_of(reason);
    if (words != "selected") all.push_back({std::move(words), *ratio});
  }
  for (Stall& stall : all) stall.part /= warps;
  std::stable_sort(all.begin(), all.end(),
                   [](const Stall& a, const Stall& b) { return a.part > b.part; });
  return all;
}

std::vector<std::string> unknown_stalls(const DeviceCounts& counts) {
  std::vector<std::string> all;
  for (const char* reason : kReasons) {
    if (std::find(counts.unknown.begin(), counts.unknown.end(), stall_metric(reason)) !=
        counts.unknown.end())
      all.push_back(words_of(reason));
  }
  return all;
}

}  // namespace strobe::lab
