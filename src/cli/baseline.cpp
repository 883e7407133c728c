#include "cli/baseline.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/commands.h"
#include "core/user_folder.h"
#include "strobe/error.h"

namespace strobe::cli {

void BaselineName::add_to(CLI::App& command) {
  command.add_option("NAME", name, "What it is called")->required();
  folder = user_folder("STROBE_DATA_DIR", "XDG_DATA_HOME", ".local/share") / "baselines";
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
