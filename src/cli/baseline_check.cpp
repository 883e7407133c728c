#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/baseline.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "measure/other_build.h"
#include "measure/regression.h"
#include "report/record_file.h"
#include "report/table.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cli {
namespace {

using nlohmann::json;

struct CheckOptions {
  BaselineName baseline{};
  double threshold_percent = 3;
  bool other_machine = false;
  bool records_only = false;
  OutputOptions output{};

  double threshold() const { return threshold_percent / 100; }
};

/// What a baseline says of one implementation on one problem.
struct Expectation {
  lab::Contest contest{};
  std::vector<double> samples_ms{};
};

struct Verdict {
  Expectation expected{};
  lab::Benchmark now{};
  lab::Judgement judgement{};
  bool in_turns = false;    ///< with the saved build; otherwise the judgement is by its records
  std::string why_alone{};  ///< if not, although there is a saved build

  bool slower() const { return judgement.change == lab::Change::slower; }
  bool regressed() const { return now.status != lab::Status::ok || slower(); }
  std::string name() const {
    return fmt::format("{} on {}", now.implementation, now.problem.text());
  }
};

// --- What was saved

/// What must be alike for two times to be comparable.
std::string machine_text(const json& record) {
  const json& m = record.at("machine");
  return fmt::format("{}, {} of {} cores, {}, GPU {}", m.value("cpu", "unknown CPU"),
                     m.value("threads", 0), m.value("cores", 0), m.value("isa", "unknown"),
                     m.value("gpu", json()).is_null() ? "none" : m["gpu"].dump());
}

std::vector<json> read_baseline(const CheckOptions& options) {
  std::vector<json> records = lab::read_records(options.baseline.records());
  if (!records.empty()) return records;
  throw InvalidArgument("NAME", fmt::format("is '{}', a baseline without a record; save it again",
                                            options.baseline.name));
}

/// True if it is the same machine; throws if it is not and that was not asked for.
bool same_machine(const CheckOptions& options, const json& then, const json& now) {
  const std::string before = machine_text(then);
  const std::string here = machine_text(now);
  if (before == here || options.other_machine) return before == here;
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
        {.contest = {&Registry::instance().find(implementation), Problem::parse(problem)},
         .samples_ms = record.at("samples")});
  }
  return expected;
}

json sampling_of(const json& record) {
  return record.value("sampling", json::object());
}

/// As the baseline was measured; what caches each kind of device began with, its own records say.
lab::SamplingPolicy policy_of(const std::vector<json>& records) {
  lab::SamplingPolicy policy;
  const json sampling = sampling_of(records.front());
  policy.budget_s = sampling.value("budget_s", policy.budget_s);
  policy.min_samples = sampling.value("min_samples", policy.min_samples);
  policy.max_samples = sampling.value("max_samples", policy.max_samples);
  for (const json& record : records) {
    const bool cpu = record.value("device", "cpu") == "cpu";
    (cpu ? policy.cache : policy.gpu_cache) =
        lab::parse_cache(sampling_of(record).value("cache", "warm")).value_or(lab::Cache::warm);
  }
  return policy;
}

// --- Measuring again

/// Why an implementation cannot be timed beside the saved library; "" if it can.
std::string why_alone(const Implementation& implementation) {
  if (implementation.habits().guest) return "no saved build has it";
  const bool cpu = implementation.device() == Device::Kind::cpu;
  return cpu ? "" : "saved builds are timed on the CPU only";
}

/// How a check is measured: beside the library that was saved, or alone, against its records.
class Checker {
 public:
  Checker(const std::vector<json>& records, double threshold)
      : options_{.threads = records.front().at("machine").value("threads", 0)},
        policy_(policy_of(records)),
        threshold_(threshold) {}

  /// Says why if it cannot.
  void use_library(const std::string& path) {
    try {
      earlier_.emplace(path);
    } catch (const Error& error) {
      fmt::print(stderr, "compared with the saved times alone, because {}\n", error.what());
    }
  }

  std::vector<Verdict> judge(const std::vector<Expectation>& expected) const;

 private:
  Verdict judge_in_turns(const Expectation& expected) const;
  std::vector<Verdict> judge_by_records(const std::vector<Expectation>& expected) const;

  PlanOptions options_;
  lab::SamplingPolicy policy_;
  double threshold_;
  std::optional<lab::OtherBuild> earlier_{};
};

/// Beside the saved library where that can be done, and the rest by records afterwards.
std::vector<Verdict> Checker::judge(const std::vector<Expectation>& expected) const {
  if (!earlier_) return judge_by_records(expected);
  std::vector<Verdict> verdicts;
  std::vector<Expectation> left;
  Progress progress(expected.size());
  for (const Expectation& each : expected) {
    progress.show(verdicts.size(), each.contest.problem.text());
    verdicts.push_back(judge_in_turns(each));
    if (!verdicts.back().in_turns) left.push_back(each);
  }
  progress.clear();
  auto by_records = judge_by_records(left);
  auto next = by_records.begin();
  for (Verdict& verdict : verdicts) {
    if (verdict.in_turns) continue;
    next->why_alone = std::move(verdict.why_alone);
    verdict = std::move(*next++);
  }
  return verdicts;
}

/// Or only why not.
Verdict Checker::judge_in_turns(const Expectation& expected) const {
  const Implementation& implementation = *expected.contest.implementation;
  if (std::string why = why_alone(implementation); !why.empty())
    return {.expected = expected, .why_alone = std::move(why)};
  const auto earlier = earlier_->implementation(std::string(implementation.name()));
  lab::Duel duel = lab::time_in_turns(*earlier, expected.contest, options_, policy_);
  if (duel.then.status != lab::Status::ok)
    return {.expected = expected,
            .why_alone = fmt::format("that of the saved build failed: {}", duel.then.reason)};
  const lab::Judgement judgement = lab::judge_pairs(duel.then.measurement.samples_ms,
                                                    duel.now.measurement.samples_ms, threshold_);
  return {
      .expected = expected, .now = std::move(duel.now), .judgement = judgement, .in_turns = true};
}

std::vector<Verdict> Checker::judge_by_records(const std::vector<Expectation>& expected) const {
  std::vector<lab::Contest> contests;
  for (const Expectation& each : expected) contests.push_back(each.contest);
  Progress progress(lab::kRounds * contests.size());
  auto results = lab::time_in_rounds(
      contests, options_, policy_, [&](std::size_t done, std::size_t, const lab::Contest& contest) {
        progress.show(done, contest.problem.text());
      });
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const lab::Judgement judgement =
        lab::judge(expected[i].samples_ms, results[i].measurement.samples_ms, threshold_);
    verdicts.push_back({expected[i], std::move(results[i]), judgement});
  }
  return verdicts;
}

/// A busy moment makes everything slow, a slower kernel stays slow: what looks slower must look so
/// every time.
void confirm(std::vector<Verdict>& verdicts, const Checker& checker) {
  constexpr int kConfirmations = 2;
  for (int i = 0; i < kConfirmations; ++i) {
    std::vector<Expectation> suspects;
    for (const Verdict& verdict : verdicts) {
      if (verdict.slower()) suspects.push_back(verdict.expected);
    }
    if (suspects.empty()) return;
    auto again = checker.judge(suspects);
    std::size_t next = 0;
    for (Verdict& verdict : verdicts) {
      if (verdict.slower()) verdict = std::move(again[next++]);
    }
  }
}

// --- What came of it

std::vector<std::string> row_of(const Verdict& verdict) {
  const lab::Benchmark& b = verdict.now;
  const lab::Judgement& judgement = verdict.judgement;
  const std::string then = fmt::format("{:.3f}", judgement.then_ms);
  if (b.status != lab::Status::ok) {
    return {b.implementation, b.problem.text(), then, "", "", std::string(lab::name_of(b.status))};
  }
  return {b.implementation,
          b.problem.text(),
          then,
          fmt::format("{:.3f}", judgement.now_ms),
          fmt::format("{:+.1f} %", 100 * judgement.slowdown),
          std::string(lab::name_of(judgement.change))};
}

/// What the times of then are: medians of the saved build, or floors of its records.
std::string title_of_then(const std::vector<Verdict>& verdicts) {
  const auto in_turns = [](const Verdict& verdict) { return verdict.in_turns; };
  if (std::all_of(verdicts.begin(), verdicts.end(), in_turns)) return "Saved build (ms)";
  return std::none_of(verdicts.begin(), verdicts.end(), in_turns) ? "Floor then (ms)" : "Then (ms)";
}

/// A sentence for each implementation and reason, on however many problems.
void tell_why_alone(std::FILE* text, const std::vector<Verdict>& verdicts) {
  std::set<std::string> told;
  for (const Verdict& verdict : verdicts) {
    if (verdict.why_alone.empty()) continue;
    const std::string sentence =
        fmt::format("{} is compared with its saved times alone, because {}.\n",
                    verdict.now.implementation, verdict.why_alone);
    if (told.insert(sentence).second) fmt::print(text, "{}", sentence);
  }
}

/// The one that failed, or became slowest.
const Verdict* worst_of(const std::vector<Verdict>& verdicts) {
  const auto badness = [](const Verdict& v) {
    return v.now.status != lab::Status::ok ? 1e300 : v.judgement.slowdown;
  };
  const Verdict* worst = nullptr;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.regressed()) continue;
    if (worst == nullptr || badness(verdict) > badness(*worst)) worst = &verdict;
  }
  return worst;
}

int conclude(std::FILE* text, const std::vector<Verdict>& verdicts, double threshold) {
  std::size_t regressions = 0, noisy = 0;
  for (const Verdict& verdict : verdicts) {
    noisy += verdict.judgement.change == lab::Change::too_noisy;
    regressions += verdict.regressed();
    if (!verdict.now.reason.empty()) {
      fmt::print(text, "{}: {}\n", verdict.name(), verdict.now.reason);
    }
  }
  if (noisy > 0) {
    fmt::print(text,
               "{} too noisy to show a slowdown of {:.0f} %: a quieter machine or a larger "
               "--budget when saving would.\n",
               noisy, 100 * lab::visible_slowdown(threshold));
  }
  const Verdict* const worst = worst_of(verdicts);
  if (worst == nullptr) {
    fmt::print(text, "No regression: nothing is slower by more than {:.3g} %.\n", 100 * threshold);
    return kDone;
  }
  fmt::print(text, "{} of {} regressed. Worst: {}, {}.\n", regressions, verdicts.size(),
             worst->name(),
             worst->now.status == lab::Status::ok
                 ? fmt::format("{:.1f} % slower", 100 * worst->judgement.slowdown)
                 : std::string(lab::name_of(worst->now.status)));
  return kCheckFailed;
}

int check(const CheckOptions& options) {
  const std::vector<json> saved = read_baseline(options);
  const json& first = saved.front();
  const lab::Peaks peaks = lab::machine_peaks(first.at("machine").value("threads", 0));
  const bool same = same_machine(options, first, lab::record_of(lab::Benchmark{}, peaks));
  const std::vector<Expectation> expected = expectations(saved);
  lab::RecordWriter records = options.output.records();

  Checker checker(saved, options.threshold());
  if (same && !options.records_only) checker.use_library(options.baseline.library());
  std::vector<Verdict> verdicts = checker.judge(expected);
  confirm(verdicts, checker);

  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Problem"},
                    {title_of_then(verdicts), kRight},
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
  tell_why_alone(text, verdicts);
  return conclude(text, verdicts, options.threshold());
}

}  // namespace

void add_baseline_check(CLI::App& baseline, int& status) {
  CLI::App* command = baseline.add_subcommand(
      "check", "Measure the same again, beside the saved library, and say what became slower");
  auto o = std::make_shared<CheckOptions>();
  o->baseline.add_to(*command);
  command
      ->add_option("--threshold", o->threshold_percent,
                   "Slower means: the confidence interval lies beyond this")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("PERCENT")
      ->capture_default_str();
  command->add_flag("--records-only", o->records_only,
                    "Compare with the saved times, not with the saved library in turns");
  command->add_flag("--other-machine", o->other_machine,
                    "Compare with the saved times although they are of another machine");
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

}  // namespace strobe::cli
