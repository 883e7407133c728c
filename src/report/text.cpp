#include "report/text.h"

#include <fmt/format.h>

#include <vector>

#include "measure/roofline.h"
#include "strobe/machine.h"

namespace strobe::lab {

std::string bytes_text(std::int64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", amount / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", amount / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.1f} kB", amount / 1e3);
  return fmt::format("{} B", bytes);
}

std::string megabytes_text(double bytes) {
  return fmt::format("{:.1f}", bytes / 1e6);
}

std::string error_text(double error) {
  return error == 0 ? "0" : fmt::format("{:.2e}", error);
}

std::string tuning_text(const TuningRecord& tuning) {
  std::string text;
  for (const auto& [key, value] : tuning) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", key, value);
  }
  return text;
}

std::string reason_text(const std::string& implementation, const std::string& reason) {
  if (reason.starts_with(implementation + " ")) return reason;
  return fmt::format("{}: {}", implementation, reason);
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string state_text(const DeviceState& state) {
  std::vector<std::string> parts;
  if (state.clock_mhz) parts.push_back(fmt::format("{} MHz", *state.clock_mhz));
  if (state.memory_clock_mhz)
    parts.push_back(fmt::format("memory {} MHz", *state.memory_clock_mhz));
  if (state.power_w) parts.push_back(fmt::format("{:.0f} W", *state.power_w));
  if (state.temperature_c) parts.push_back(fmt::format("{} C", *state.temperature_c));
  if (state.memory_used_bytes) {
    parts.push_back(fmt::format("{} in use", bytes_text(*state.memory_used_bytes)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string slowdown_text(const Benchmark& result) {
  const auto& reasons = result.measurement.device.slowed_by;
  if (reasons.empty()) return "";
  return fmt::format("{} kept its clocks down while {} was timed: {}", to_string(result.device),
                     result.implementation, fmt::join(reasons, ", "));
}

std::string measuring_command(const Peaks& peaks) {
  const bool usual = peaks.device.kind != Device::Kind::cpu || peaks.threads == machine().cores;
  return usual ? "strobe info --measure"
               : fmt::format("strobe info --measure --threads {}", peaks.threads);
}

std::string low_peak_text(const Benchmark& result, const Peaks& peaks) {
  constexpr double kOfChance = 1.03;  // by which a peak and a result may differ in quiet moments
  if (!result.timed()) return "";
  const Roofline roof = roofline(result, peaks);
  const double rate = result.flops_per_second(result.measurement.ms.median);
  if (roof.memory_bound() || roof.peak_flops <= 0 || rate < kOfChance * roof.peak_flops) return "";
  return fmt::format(
      "{} reaches {:.0f} % of the peak of {}, which was measured when the machine was slower; "
      "{} measures it again",
      result.implementation, 100 * rate / roof.peak_flops, to_string(result.device),
      measuring_command(peaks));
}

}  // namespace strobe::lab
