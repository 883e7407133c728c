#include "verify/case.h"

#include <fmt/format.h>

#include <algorithm>

#include "strobe/error.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

/// The position of `name` in `names`, which are in the order of the enum.
template <class Enum>
Enum parse(const char* field, std::string_view name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw InvalidArgument(
        field, fmt::format("is '{}', allowed is one of {}", name, fmt::join(names, ", ")));
  }
  return static_cast<Enum>(found - names.begin());
}

/// How an implementation was asked to compute, as options of a command.
std::string plan_text(Device device, const PlanOptions& options) {
  std::string text;
  if (device.index > 0) text += fmt::format(" --device {}", to_string(device));
  if (options.tf32) text += " --tf32";
  if (options.deterministic) text += " --deterministic";
  if (options.reference != SoftmaxReference::automatic) {
    text += fmt::format(" --reference {}", strobe::name_of(options.reference));
  }
  if (!options.variant.empty()) text += fmt::format(" --variant {}", options.variant);
  return text;
}

}  // namespace

const std::vector<std::string>& storage_names() {
  static const std::vector<std::string> names{"contiguous", "transposed", "sliced", "expanded",
                                              "noncontiguous-dout"};
  return names;
}

const std::vector<std::string>& distribution_names() {
  static const std::vector<std::string> names{"normal", "opposed"};
  return names;
}

std::string_view name_of(Storage storage) {
  return storage_names().at(static_cast<std::size_t>(storage));
}

std::string_view name_of(Distribution distribution) {
  return distribution_names().at(static_cast<std::size_t>(distribution));
}

Storage parse_storage(std::string_view name) {
  return parse<Storage>("storage", name, storage_names());
}

Distribution parse_distribution(std::string_view name) {
  return parse<Distribution>("distribution", name, distribution_names());
}

std::string Case::name() const {
  std::string name = problem.text();
  if (inputs.scale != 1) name += fmt::format(", x{}", inputs.scale);
  if (inputs.distribution != Distribution::normal) {
    name += fmt::format(", {}", name_of(inputs.distribution));
  }
  if (inputs.storage != Storage::contiguous) name += fmt::format(", {}", name_of(inputs.storage));
  if (inputs.masked_bias) name += ", masked bias";
  if (inputs.seed != 0) name += fmt::format(", inputs {}", inputs.seed);
  return name;
}

std::string Case::command(const Implementation& implementation, const PlanOptions& options) const {
  if (implementation.habits().guest) return "";
  std::string line =
      fmt::format("strobe verify --problem \"{}\" --impl {} --pass {}", problem.text(),
                  full_name(implementation), strobe::name_of(problem.pass));
  if (inputs.scale != 1) line += fmt::format(" --inputs-scale {}", inputs.scale);
  if (inputs.distribution != Distribution::normal) {
    line += fmt::format(" --distribution {}", name_of(inputs.distribution));
  }
  if (inputs.storage != Storage::contiguous) {
    line += fmt::format(" --storage {}", name_of(inputs.storage));
  }
  if (inputs.masked_bias) line += " --masked-bias";
  if (inputs.seed != 0) line += fmt::format(" --seed {}", inputs.seed);
  return line + plan_text(device_of(implementation, options), options);
}

}  // namespace strobe::lab
