#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/benchmark.h"
#include "measure/peaks.h"
#include "measure/recorded_calls.h"
#include "measure/roofline.h"
#include "strobe/trace.h"

namespace strobe::lab {

/// One pass that was looked at closely.
struct PassProfile {
  Benchmark result{};
  Roofline roof{};
  RecordedCalls calls{};
  CountedCalls counted{};           ///< on the CPU
  DeviceCounts device_counts{};     ///< on a GPU
  std::optional<double> speedup{};  ///< over the unfused computation, where that ran

  double ms() const { return result.measurement.ms.median; }
  double flops_per_second() const { return result.flops_per_second(ms()); }
  /// Inputs read and outputs written once: no implementation can do with less.
  std::int64_t least_bytes() const { return result.memory.inputs + result.memory.outputs; }
  double bytes_per_second() const { return static_cast<double>(least_bytes()) / ms() * 1e3; }
  bool on_cpu() const { return result.device.kind == Device::Kind::cpu; }
  /// "forward"
  std::string name() const { return std::string(name_of(result.problem.pass)); }
};

/// All that the files of `strobe profile` are made from.
struct Profile {
  std::vector<PassProfile> passes{};  ///< at least one
  Peaks peaks{};                      ///< of the device that it ran on
  std::string machine{};              ///< in words

  const Benchmark& first() const { return passes.front().result; }
};

/// An outside profiler, and what became of it.
struct ExternalTool {
  std::string name{};                ///< "nsys"
  std::string adds{};                ///< what its files tell
  std::vector<std::string> files{};  ///< that it has left
  std::string trouble{};             ///< a sentence that says why there are none, and what to do
};

/// Whether the targets are met, and which are not, in one line.
std::string verdict_text(const Profile& profile);

/// What to read first: what was run, the figures, how they stand to the targets, and what to do.
std::string summary_text(const Profile& profile, const std::vector<ExternalTool>& tools);

std::string memory_metrics_text(const Profile& profile);
std::string compute_metrics_text(const Profile& profile);

}  // namespace strobe::lab
