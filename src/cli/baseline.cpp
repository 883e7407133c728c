#include "cli/baseline.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

/// STROBE_DATA_DIR, or strobe/ in XDG_DATA_HOME or ~/.local/share.
std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  std::filesystem::path folder = variable("STROBE_DATA_DIR");
  if (folder.empty() && !variable("XDG_DATA_HOME").empty()) {
    folder = variable("XDG_DATA_HOME") / "strobe";
  }
  if (folder.empty()) folder = variable("HOME") / ".local" / "share" / "strobe";
  return folder / "baselines";
}

}  // namespace

void BaselineName::add_to(CLI::App& command) {
  command.add_option("NAME", name, "What it is called")->required();
  folder = default_folder();
  command.add_option("--dir", folder, "Folder of baselines")
      ->type_name("DIR")
      ->capture_default_str();
}

std::string BaselineName::path(const std::string& ending) const {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.front() == '.' ||
      name.find_first_not_of(kAllowed) != std::string::npos) {
    throw InvalidArgument(
        "NAME", fmt::format("is '{}', allowed are letters, digits, '.', '_' and '-'", name));
  }
  return std::filesystem::path(folder) / (name + ending);
}

void add_baseline(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "baseline", "Keep times under a name, and check later builds against them");
  command->require_subcommand(1);
  command->footer(
      "Example:\n  strobe baseline save example --force --problem \"b1 s256 h2 d64 fp32\"");
  add_baseline_save(*command, status);
  add_baseline_check(*command, status);
}

}  // namespace strobe::cli
