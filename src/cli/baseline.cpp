#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "measure/regression.h"
#include "report/record_file.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

using nlohmann::json;

/// Where a baseline lies.
struct BaselineName {
  std::string name{};
  std::string folder{};

  void add_to(CLI::App& command);
  std::string path() const;
};

struct SaveOptions {
  BaselineName baseline{};
  bool force = false;
  ProblemSetOptions problems{};
  std::vector<std::string> implementations{"flash"};
  int threads = 0;
  SamplingOptions sampling{.budget_s = 3};
};

struct CheckOptions {
  BaselineName baseline{};
  double threshold_percent = 3;
  bool other_machine = false;
  OutputOptions output{};
};

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

void BaselineName::add_to(CLI::App& command) {
  command.add_option("NAME", name, "What it is called")->required();
  folder = default_folder();
  command.add_option("--dir", folder, "Folder of baselines")
      ->type_name("DIR")
      ->capture_default_str();
}

std::string BaselineName::path() const {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.front() == '.' ||
      name.find_first_not_of(kAllowed) != std::string::npos) {
    throw InvalidArgument(
        "NAME", fmt::format("is '{}', allowed are letters, digits, '.', '_' and '-'", name));
  }
  return std::filesystem::path(folder) / (name + ".jsonl");
}

std::string contest_name(const lab::Benchmark& b) {
  return fmt::format("{} on {}", b.implementation, b.problem.text());
}

std::vector<lab::Benchmark> time_all(const std::vector<lab::Contest>& contests,
                                     const PlanOptions& options,
                                     const lab::SamplingPolicy& policy) {
  Progress progress(lab::kRounds * contests.size());
  return lab::time_in_rounds(contests, options, policy,
                             [&](std::size_t done, std::size_t, const lab::Contest& contest) {
                               progress.show(done, contest.problem.text());
                             });
}

// --- save

/// Nothing wrong or missing may become what later builds are held against.
int refuse_to_save(const lab::Benchmark& b) {
  fmt::print(stderr, "strobe: nothing is saved, because {} could not be measured: {}\n",
             contest_name(b), b.reason);
  return b.status == lab::Status::failed ? kCheckFailed : kNotPossible;
}

int save(const SaveOptions& options) {
  const std::string path = options.baseline.path();
  if (!options.force && std::filesystem::exists(path)) {
    throw InvalidArgument("NAME", fmt::format("is '{}', which exists already ({}); choose another "
                                              "name, or add --force to replace it",
                                              options.baseline.name, path));
  }
  std::vector<lab::Contest> contests;
  for (const Problem& problem : options.problems.choose()) {
    for (const auto* implementation : find_implementations(options.implementations)) {
      contests.push_back({implementation, problem});
    }
  }
  std::error_code error;
  std::filesystem::create_directories(options.baseline.folder, error);
  lab::RecordWriter records(path, true);  // says now if it cannot be written
  const lab::Peaks peaks = lab::machine_peaks(options.threads);
  const auto results = time_all(contests, {.threads = options.threads}, options.sampling.policy());

  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Problem"},
                    {"Floor (ms)", kRight},
                    {"+/-", kRight},
                    {"Median (ms)", kRight},
                    {"Samples", kRight}});
  for (const lab::Benchmark& b : results) {
    if (b.status != lab::Status::ok) return refuse_to_save(b);
    const auto& samples = b.measurement.samples_ms;
    const lab::Floor floor = lab::floor_of(samples, samples.size());
    table.add_row(
        {b.implementation, b.problem.text(), fmt::format("{:.3f}", floor.ms),
         floor.ci95 ? fmt::format("{:.1f} %", 50 * (floor.ci95->high - floor.ci95->low) / floor.ms)
                    : "-",
         fmt::format("{:.3f}", b.measurement.ms.median), fmt::format("{}", samples.size())});
  }
  for (const lab::Benchmark& b : results) records.write(b, peaks);
  fmt::print("{}Saved {} records as '{}' in {}\n", table.render(), results.size(),
             options.baseline.name, path);
  return kDone;
}

// --- check

/// What a baseline says of one implementation on one problem.
struct Expectation {
  lab::Contest contest{};
  std::vector<double> samples_ms{};
};

struct Verdict {
  Expectation expected{};
  lab::Benchmark now{};
  lab::Judgement judgement{};

  bool slower() const { return judgement.change == lab::Change::slower; }
  bool regressed() const { return now.status != lab::Status::ok || slower(); }
};

/// What must be alike for two times to be comparable.
std::string machine_text(const json& record) {
  const json& m = record.at("machine");
  return fmt::format("{}, {} of {} cores, {}, GPU {}", m.value("cpu", "unknown CPU"),
                     m.value("threads", 0), m.value("cores", 0), m.value("isa", "unknown"),
                     m.value("gpu", json()).is_null() ? "none" : m["gpu"].dump());
}

json first_record(const CheckOptions& options, const std::vector<json>& records) {
  if (!records.empty()) return records.front();
  throw InvalidArgument("NAME", fmt::format("is '{}', a baseline without a record; save it again",
                                            options.baseline.name));
}

void refuse_other_machine(const CheckOptions& options, const json& then, const json& now) {
  const std::string before = machine_text(then);
  const std::string here = machine_text(now);
  if (before == here || options.other_machine) return;
  throw InvalidArgument(
      "NAME", fmt::format("is '{}', saved on another machine ({}) than this one ({}); times of two "
                          "machines do not compare, --other-machine does it all the same",
                          options.baseline.name, before, here));
}

std::vector<Expectation> expectations(const std::vector<json>& records) {
  std::vector<Expectation> expected;
  for (const json& record : records) {
    const std::string implementation = record.at("implementation");
    const std::string problem = record.at("problem");
    expected.push_back(
        {.contest = {find_implementations({implementation}).front(), Problem::parse(problem)},
         .samples_ms = record.at("samples")});
  }
  return expected;
}

/// As the baseline was measured.
lab::SamplingPolicy policy_of(const json& record) {
  lab::SamplingPolicy policy;
  const json sampling = record.value("sampling", json::object());
  policy.target = sampling.value("target", policy.target);
  policy.budget_s = sampling.value("budget_s", policy.budget_s);
  policy.min_samples = sampling.value("min_samples", policy.min_samples);
  policy.max_samples = sampling.value("max_samples", policy.max_samples);
  if (sampling.value("cache", "warm") == "cold") policy.cache = lab::Cache::cold;
  return policy;
}

std::vector<Verdict> judge_all(const std::vector<Expectation>& expected, const PlanOptions& options,
                               const lab::SamplingPolicy& policy, double threshold) {
  std::vector<lab::Contest> contests;
  for (const Expectation& each : expected) contests.push_back(each.contest);
  auto results = time_all(contests, options, policy);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const lab::Judgement judgement =
        lab::judge(expected[i].samples_ms, results[i].measurement.samples_ms, threshold);
    verdicts.push_back({expected[i], std::move(results[i]), judgement});
  }
  return verdicts;
}

/// A busy moment makes everything slow, a slower kernel stays slow: what looks slower must look so
/// every time.
void confirm(std::vector<Verdict>& verdicts, const PlanOptions& options,
             const lab::SamplingPolicy& policy, double threshold) {
  constexpr int kConfirmations = 2;
  for (int i = 0; i < kConfirmations; ++i) {
    std::vector<Expectation> suspects;
    for (const Verdict& verdict : verdicts) {
      if (verdict.slower()) suspects.push_back(verdict.expected);
    }
    if (suspects.empty()) return;
    auto again = judge_all(suspects, options, policy, threshold);
    std::size_t next = 0;
    for (Verdict& verdict : verdicts) {
      if (verdict.slower()) verdict = std::move(again[next++]);
    }
  }
}

std::vector<std::string> row_of(const Verdict& verdict) {
  const lab::Benchmark& b = verdict.now;
  const lab::Judgement& judgement = verdict.judgement;
  const std::string then = fmt::format("{:.3f}", judgement.then.ms);
  if (b.status != lab::Status::ok) {
    return {b.implementation, b.problem.text(), then, "", "", std::string(lab::name_of(b.status))};
  }
  return {b.implementation,
          b.problem.text(),
          then,
          fmt::format("{:.3f}", judgement.now.ms),
          fmt::format("{:+.1f} %", 100 * judgement.slowdown()),
          std::string(lab::name_of(judgement.change))};
}

int conclude(std::FILE* text, const std::vector<Verdict>& verdicts, double threshold) {
  std::size_t regressions = 0, noisy = 0;
  const Verdict* worst = nullptr;
  for (const Verdict& verdict : verdicts) {
    noisy += verdict.judgement.change == lab::Change::too_noisy;
    if (!verdict.regressed()) continue;
    ++regressions;
    if (verdict.now.status != lab::Status::ok) {
      fmt::print(text, "{}: {}\n", contest_name(verdict.now), verdict.now.reason);
    }
    const auto badness = [](const Verdict& v) {
      return v.now.status != lab::Status::ok ? 1e300 : v.judgement.slowdown();
    };
    if (worst == nullptr || badness(verdict) > badness(*worst)) worst = &verdict;
  }
  if (noisy > 0) {
    fmt::print(text,
               "{} too noisy to show a slowdown of {:.0f} %: a quieter machine or a larger "
               "--budget when saving would.\n",
               noisy, 100 * lab::visible_slowdown(threshold));
  }
  if (regressions == 0) {
    fmt::print(text, "No regression: nothing is slower by more than {:.3g} %.\n", 100 * threshold);
    return kDone;
  }
  fmt::print(text, "{} of {} regressed. Worst: {}, {}.\n", regressions, verdicts.size(),
             contest_name(worst->now),
             worst->now.status == lab::Status::ok
                 ? fmt::format("{:.1f} % slower", 100 * worst->judgement.slowdown())
                 : std::string(lab::name_of(worst->now.status)));
  return kCheckFailed;
}

int check(const CheckOptions& options) {
  const std::vector<json> saved = lab::read_records(options.baseline.path());
  const json first = first_record(options, saved);
  const int threads = first.at("machine").value("threads", 0);
  const lab::Peaks peaks = lab::machine_peaks(threads);
  refuse_other_machine(options, first, lab::record_of(lab::Benchmark{}, peaks));
  const std::vector<Expectation> expected = expectations(saved);
  lab::RecordWriter records = options.output.records();
  const double threshold = options.threshold_percent / 100;

  const lab::SamplingPolicy policy = policy_of(first);
  const PlanOptions plan_options{.threads = threads};
  auto verdicts = judge_all(expected, plan_options, policy, threshold);
  confirm(verdicts, plan_options, policy, threshold);

  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Problem"},
                    {"Floor then (ms)", kRight},
                    {"Now (ms)", kRight},
                    {"Change", kRight},
                    {"Verdict"}});
  for (const Verdict& verdict : verdicts) {
    table.add_row(row_of(verdict));
    records.write(verdict.now, peaks);
  }
  std::FILE* const text = options.output.text();
  fmt::print(text, "Baseline '{}' of {}, commit {}\n{}", options.baseline.name,
             first.value("time", "unknown time"), first.value("commit", "unknown"), table.render());
  return conclude(text, verdicts, threshold);
}

void add_save(CLI::App& baseline, int& status) {
  CLI::App* command = baseline.add_subcommand("save", "Measure and keep the results under a name");
  auto o = std::make_shared<SaveOptions>();
  o->baseline.add_to(*command);
  o->problems.add_to(*command);
  command->add_option("--impl", o->implementations, "Implementations, with commas")
      ->delimiter(',')
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--threads", o->threads, "CPU threads; all cores if not given")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  o->sampling.add_to(*command, false);
  command->add_flag("--force", o->force, "Replace a baseline of that name");
  command->footer(
      "Without a problem, a representative set is measured.\n\n"
      "Example:\n  strobe baseline save example --force --problem \"b1 s256 h2 d64 fp32\"");
  command->callback([&status, o] { status = save(*o); });
}

void add_check(CLI::App& baseline, int& status) {
  CLI::App* command =
      baseline.add_subcommand("check", "Measure the same again and say what has become slower");
  auto o = std::make_shared<CheckOptions>();
  o->baseline.add_to(*command);
  command
      ->add_option("--threshold", o->threshold_percent,
                   "Slower means: the confidence intervals lie apart by more than this")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("PERCENT")
      ->capture_default_str();
  command->add_flag("--other-machine", o->other_machine,
                    "Compare although the baseline is of another machine");
  o->output.add_to(*command);
  command->footer(
      "Exit status 1 if anything regressed.\n\n"
      "Example:\n  strobe baseline save example --force --problem \"b1 s256 h2 d64 fp32\" "
      "&& strobe baseline check example");
  command->callback([&status, o] {
    try {
      status = check(*o);
    } catch (const json::exception& error) {
      throw InvalidArgument("NAME", fmt::format("is '{}', whose records lack something: {}",
                                                o->baseline.name, error.what()));
    }
  });
}

}  // namespace

void add_baseline(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "baseline", "Keep times under a name, and check later builds against them");
  command->require_subcommand(1);
  command->footer(
      "Example:\n  strobe baseline save example --force --problem \"b1 s256 h2 d64 fp32\"");
  add_save(*command, status);
  add_check(*command, status);
}

}  // namespace strobe::cli
