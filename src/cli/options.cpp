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

void OutputOptions::add_quiet_to(CLI::App& command) {
  command.add_flag("--quiet", quiet, "Print no tables, for the records are enough");
}

std::FILE* OutputOptions::text() const {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  if (quiet && nowhere != nullptr) return nowhere;
  if (json == "-") return stderr;
  return instead != nullptr ? instead : stdout;
}

void SamplingOptions::add_to(CLI::App& command, bool with_target) {
  CLI::Option* const exactly = command.add_option("--repeats", repeats, "Exactly so many samples")
                                   ->check(CLI::Range(1, 1'000'000))
                                   ->type_name("N");
  if (with_target) {
    command
        .add_option("--target", target_percent,
                    "Sample until the median is known within so many percent")
        ->check(CLI::Range(0.0, 100.0))
        ->type_name("PERCENT")
        ->excludes(exactly)
        ->capture_default_str();
  }
  command
      .add_option("--budget", budget_s,
                  with_target ? "or until so many seconds are spent on it"
                              : "Seconds to spend on each implementation and problem")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS")
      ->excludes(exactly)
      ->capture_default_str();
  command
      .add_option("--cache", cache,
                  "On the CPU, begin each sample with warm caches, or evict them: cold")
      ->check(CLI::IsMember({"warm", "cold"}))
      ->capture_default_str();
  command
      .add_option(
          "--l2", l2,
          "On a GPU, let runs take turns on copies of the operands that its L2 cache cannot "
          "hold: rotate; or empty it before each: flush; or leave it warm")
      ->check(CLI::IsMember({"rotate", "flush", "warm"}))
      ->capture_default_str();
}

void SamplingOptions::add_quick_to(CLI::App& command, bool& quick, const std::string& help) {
  command.add_flag("--quick", quick, help)->excludes(command.get_option("--budget"));
}

void SamplingOptions::add_pinning_to(CLI::App& command) {
  command.add_flag("--no-pin", no_pin,
                   "Let the system move threads from core to core while they are timed");
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
  policy.gpu_cache = l2 == "rotate"  ? lab::Cache::rotated
                     : l2 == "flush" ? lab::Cache::cold
                                     : lab::Cache::warm;
  policy.pin = !no_pin;
  return policy;
}

lab::SamplingPolicy SamplingOptions::quick_policy() const {
  lab::SamplingPolicy quick = policy();
  quick.warmup_s = 0.1;
  if (repeats > 0) return quick;
  quick.min_samples = 2;
  quick.budget_s = 0.3;
  return quick;
}

void add_threads(CLI::App& command, int& threads) {
  command
      .add_option("--threads", threads,
                  "CPU threads; as many as STROBE_THREADS or the machine says if not given")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
}

namespace {

constexpr const char* kProblemHelp = "A problem by its text form, \"b2 s4096 h16 d128\"";

/// --preset and an option for each setting, none of them beside --problem.
void add_settings(CLI::App& command, ProblemOptions& options, CLI::Option* problem) {
  std::string names;
  for (const lab::Preset& known : lab::presets()) names += fmt::format(" {}", known.name);
  command.add_option("--preset", options.preset, "A problem by its name:" + names)
      ->type_name("NAME")
      ->excludes(problem);
  for (const lab::Setting& setting : lab::settings()) {
    const std::string name(setting.name);
    const std::string help(setting.help);
    const auto set = [&options, name](const std::string& value) { options.settings[name] = value; };
    CLI::Option* const option =
        name == "causal" ? command.add_flag_callback(
                               setting.flags(), [set] { set("yes"); }, help)
                         : command.add_option_function<std::string>(setting.flags(), set, help)
                               ->type_name(std::string(setting.value));
    option->excludes(problem);
  }
}

}  // namespace

void ProblemOptions::add_to(CLI::App& command) {
  CLI::Option* const text =
      command.add_option("--problem", problem, kProblemHelp)->type_name("TEXT");
  add_settings(command, *this, text);
}

Problem ProblemOptions::choose(const Problem& base) const {
  if (!problem.empty()) return Problem::parse(problem);
  if (preset.empty()) return lab::make_problem(settings, base);
  return lab::make_problem(settings, lab::problem_of(lab::find_preset(preset), base.dtype));
}

void PassOptions::add_to(CLI::App& command) {
  CLI::Option* const option =
      command.add_option("--pass", pass, "Which pass to time: both, unless a preset differs")
          ->check(CLI::IsMember({"forward", "backward", "both"}));
  command.add_flag("--no-grad,--fwd_only", no_grad, "Forward pass only")->excludes(option);
}

std::vector<Pass> PassOptions::choose(const ProblemOptions& problem) const {
  const bool inference = !problem.preset.empty() && lab::find_preset(problem.preset).inference;
  if (no_grad || pass == "forward" || (pass.empty() && inference)) return {Pass::forward};
  if (pass == "backward") return {Pass::backward};
  return {Pass::forward, Pass::backward};
}

void ProblemSetOptions::add_to(CLI::App& command) {
  CLI::Option* const text =
      command.add_option("--problem", problems, std::string(kProblemHelp) + "; may be repeated")
          ->type_name("TEXT");
  add_settings(command, one, text);
  command.add_option("--pass", pass, "Which pass to time; the problem's own if not given")
      ->check(CLI::IsMember({"forward", "backward", "both"}));
}

std::vector<Problem> ProblemSetOptions::choose() const {
  std::vector<Problem> chosen;
  for (const std::string& text : problems) chosen.push_back(Problem::parse(text));
  if (chosen.empty() && one.preset.empty() && one.settings.empty()) {
    chosen = lab::representative_problems();
  }
  if (chosen.empty()) chosen = {one.choose()};
  if (pass.empty()) return chosen;
  std::vector<Problem> passes;
  for (Problem& problem : chosen) {
    for (const Pass each : {Pass::forward, Pass::backward}) {
      if (pass != "both" && pass != name_of(each)) continue;
      problem.pass = each;
      passes.push_back(problem);
    }
  }
  return passes;
}

}  // namespace strobe::cli
