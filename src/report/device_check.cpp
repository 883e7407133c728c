#include "report/device_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"

namespace strobe::lab {
namespace {

/// "1755 of 1980", or the one that is known.
template <class Number>
std::string of_most(const std::optional<Number>& now, const std::optional<Number>& most) {
  if (now && most) return fmt::format("{:.0f} of {:.0f}", double(*now), double(*most));
  if (most) return fmt::format("at most {:.0f}", double(*most));
  return now ? fmt::format("{:.0f}", double(*now)) : "";
}

bool is_slowed_by(const DeviceState& state, std::string_view reason) {
  return std::any_of(state.slowed_by.begin(), state.slowed_by.end(),
                     [reason](const std::string& words) { return words.starts_with(reason); });
}

std::string power_remark(int index, const DeviceState& state, const DeviceSettings& settings) {
  const auto &limit = settings.power_limit_w, &usual = settings.usual_power_limit_w;
  if (limit && usual && *limit < *usual) {
    return fmt::format(
        "it may take {:.0f} W and was built for {:.0f}; sudo nvidia-smi -i {} -pl {:.0f} lets it",
        *limit, *usual, index, *usual);
  }
  if (is_slowed_by(state, "power cap"))
    return "it runs at its power limit, so its clocks follow the data; only ratios of one run "
           "count";
  return "";
}

std::string clock_remark(int index, const DeviceState& state) {
  if (!is_slowed_by(state, "clocks that were set")) return "";
  return fmt::format(
      "its clocks are held by a setting; sudo nvidia-smi -i {} -rgc -rmc gives them free", index);
}

std::string heat_remark(const DeviceState& state) {
  const bool slowed = is_slowed_by(state, "heat") || is_slowed_by(state, "hardware slowdown") ||
                      is_slowed_by(state, "power brake");
  return slowed ? "heat or its power supply keeps its clocks down; see to its cooling and its power"
                : "";
}

std::string persistence_remark(int index, const DeviceSettings& settings) {
  if (settings.persistent.value_or(true)) return "";
  return fmt::format(
      "the driver unloads between processes, and the first call of each takes longer; "
      "sudo nvidia-smi -i {} -pm 1 keeps it",
      index);
}

std::string process_remark(const DeviceSettings& settings) {
  if (settings.processes.empty()) return "";
  std::vector<std::string> names;
  for (const auto& process : settings.processes) {
    names.push_back(process.memory_bytes
                        ? fmt::format("{} ({})", process.id, bytes_text(*process.memory_bytes))
                        : std::to_string(process.id));
  }
  return fmt::format(
      "others compute there too, process {}, and times are not its own; end what is yours, or take "
      "another GPU with --device cuda:N",
      fmt::join(names, ", "));
}

}  // namespace

std::string clocks_text(const DeviceState& state, const DeviceSettings& settings) {
  const std::string clock = of_most(state.clock_mhz, settings.most_clock_mhz);
  const std::string memory = of_most(state.memory_clock_mhz, settings.most_memory_clock_mhz);
  std::vector<std::string> parts;
  if (!clock.empty()) parts.push_back(clock + " MHz");
  if (!memory.empty()) parts.push_back("memory " + memory + " MHz");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string power_text(const DeviceState& state, const DeviceSettings& settings) {
  const std::string watts = of_most(state.power_w, settings.power_limit_w);
  return watts.empty() ? "" : watts + " W";
}

std::vector<std::string> device_remarks(int index, const DeviceState& state,
                                        const DeviceSettings& settings) {
  std::vector<std::string> remarks{power_remark(index, state, settings), clock_remark(index, state),
                                   heat_remark(state), persistence_remark(index, settings),
                                   process_remark(settings)};
  std::erase(remarks, "");
  return remarks;
}

}  // namespace strobe::lab
