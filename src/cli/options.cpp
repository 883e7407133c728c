#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "workload/preset.h"

namespace strobe::cli {

void OutputOptions::add_to(CLI::App& command) {
  command
      .add_option("--json", json,
                  "Also write one JSON record a line to FILE, or - for the standard output")
      ->type_name("FILE");
  command.add_flag("--force", force, "Let --json replace a file that exists");
}

void SamplingOptions::add_to(CLI::App& command) {
  CLI::Option* const exactly = command.add_option("--repeats", repeats, "Exactly so many samples")
                                   ->check(CLI::Range(1, 1'000'000))
                                   ->type_name("N");
  command
      .add_option("--target", target_percent,
                  "Sample until the median is known within so many percent")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT")
      ->excludes(exactly)
      ->capture_default_str();
  command.add_option("--budget", budget_s, "or until so many seconds are spent on it")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS")
      ->excludes(exactly)
      ->capture_default_str();
  command.add_option("--cache", cache, "Begin each sample with warm caches, or evict them: cold")
      ->check(CLI::IsMember({"warm", "cold"}))
      ->capture_default_str();
}

lab::SamplingPolicy SamplingOptions::policy() const {
  lab::SamplingPolicy policy;
  if (repeats > 0) {
    policy = lab::SamplingPolicy::exactly(repeats);
  } else {
    policy.target = target_percent / 100;
    policy.budget_s = budget_s;
  }
  policy.cache = cache == "cold" ? lab::Cache::cold : lab::Cache::warm;
  return policy;
}

void ProblemOptions::add_to(CLI::App& command, bool several) {
  CLI::Option* const text = command.add_option("--problem", problems,
                                               "A problem by its text form, \"b2 s4096 h16 d128\"");
  text->type_name("TEXT")->expected(1);
  if (several) text->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::string names;
  for (const lab::Preset& known : lab::presets()) names += fmt::format(" {}", known.name);
  command.add_option("--preset", preset, "A problem by its name:" + names)
      ->type_name("NAME")
      ->excludes(text);
  for (const lab::Setting& setting : lab::settings()) {
    std::string flags = fmt::format("--{}", setting.name);
    if (!setting.alias.empty()) flags += fmt::format(",--{}", setting.alias);
    const std::string help(setting.help);
    CLI::Option* option = nullptr;
    if (setting.name == "causal") {
      option = command.add_flag_callback(
          flags, [this] { settings["causal"] = "yes"; }, help);
    } else {
      const std::string name(setting.name);
      option = command.add_option_function<std::string>(
          flags, [this, name](const std::string& value) { settings[name] = value; }, help);
      option->type_name(std::string(setting.value));
    }
    option->excludes(text);
  }
}

std::vector<Problem> ProblemOptions::choose() const {
  std::vector<Problem> chosen;
  for (const std::string& text : problems) chosen.push_back(Problem::parse(text));
  if (!chosen.empty()) return chosen;
  const Problem base = lab::default_problem();
  if (preset.empty()) return {lab::make_problem(settings, base)};
  return {lab::make_problem(settings, lab::problem_of(lab::find_preset(preset), base.dtype))};
}

}  // namespace strobe::cli
