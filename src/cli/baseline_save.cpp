#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/baseline.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/other_build.h"
#include "measure/regression.h"
#include "report/table.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

struct SaveOptions {
  BaselineName baseline{};
  bool force = false;
  ProblemSetOptions problems{};
  std::vector<std::string> implementations{"flash"};
  int threads = 0;
  SamplingOptions sampling{.budget_s = 3};
};

/// Nothing wrong or missing may become what later builds are held against.
int refuse_to_save(const lab::Benchmark& b) {
  fmt::print(stderr, "strobe: nothing is saved, because {} on {} could not be measured: {}\n",
             b.implementation, b.problem.text(), b.reason);
  return b.status == lab::Status::failed ? kCheckFailed : kNotPossible;
}

/// The library goes with the records, so that a check can time it beside its own. Best effort: a
/// program that has the engine within itself has no library to keep.
void keep_library(const std::string& target) {
  std::error_code error;
  std::filesystem::remove(target, error);
  const std::string library = lab::library_path();
  if (library.empty()) return;
  const std::string fresh = target + ".new";
  std::filesystem::copy_file(library, fresh, std::filesystem::copy_options::overwrite_existing,
                             error);
  if (!error) std::filesystem::rename(fresh, target, error);
}

std::vector<std::string> row_of(const lab::Benchmark& b) {
  const auto& samples = b.measurement.samples_ms;
  const lab::Floor floor = lab::floor_of(samples, samples.size());
  const std::string width =
      floor.ci95 ? fmt::format("{:.1f} %", 50 * (floor.ci95->high - floor.ci95->low) / floor.ms)
                 : "-";
  return {b.implementation,
          b.problem.text(),
          fmt::format("{:.3f}", floor.ms),
          width,
          fmt::format("{:.3f}", b.measurement.ms.median),
          fmt::format("{}", samples.size())};
}

std::vector<lab::Benchmark> measure(const SaveOptions& options) {
  std::vector<lab::Contest> contests;
  for (const Problem& problem : options.problems.choose()) {
    for (const auto* implementation : RunOptions().find(options.implementations)) {
      contests.push_back({implementation, problem});
    }
  }
  Progress progress(lab::kRounds * contests.size());
  return lab::time_in_rounds(contests, {.threads = options.threads}, options.sampling.policy(),
                             [&](std::size_t done, std::size_t, const lab::Contest& contest) {
                               progress.show(done, contest.problem.text());
                             });
}

int save(const SaveOptions& options) {
  const std::string path = options.baseline.records();
  std::error_code error;  // what is wrong shows when it is to be written
  if (!options.force && std::filesystem::exists(path, error)) {
    throw InvalidArgument("NAME", fmt::format("is '{}', which exists already ({}); choose another "
                                              "name, or add --force to replace it",
                                              options.baseline.name, path));
  }
  std::filesystem::create_directories(options.baseline.folder, error);
  lab::RecordWriter records(path, true);  // says now if it cannot be written
  const std::vector<lab::Benchmark> results = measure(options);

  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Problem"},
                    {"Floor (ms)", kRight},
                    {"+/-", kRight},
                    {"Median (ms)", kRight},
                    {"Samples", kRight}});
  for (const lab::Benchmark& b : results) {
    if (b.status != lab::Status::ok) return refuse_to_save(b);
    table.add_row(row_of(b));
  }
  const lab::Peaks peaks = lab::machine_peaks(options.threads);
  for (const lab::Benchmark& b : results) records.write(b, peaks);
  keep_library(options.baseline.library());
  fmt::print("{}Saved {} records as '{}' in {}\n", table.render(), results.size(),
             options.baseline.name, path);
  return kDone;
}

}  // namespace

void add_baseline_save(CLI::App& baseline, int& status) {
  CLI::App* command =
      baseline.add_subcommand("save", "Measure, and keep the results and the library under a name");
  auto o = std::make_shared<SaveOptions>();
  o->baseline.add_to(*command);
  o->problems.add_to(*command);
  command->add_option("--impl", o->implementations, "Implementations, with commas")
      ->delimiter(',')
      ->type_name("NAME")
      ->capture_default_str();
  add_threads(*command, o->threads);
  o->sampling.add_to(*command, false);
  command->add_flag("--force", o->force, "Replace a baseline of that name");
  command->footer(
      "Without a problem, a representative set is measured.\n\n"
      "Example:\n  strobe baseline save example --force --problem \"b1 s256 h2 d64 fp32\"");
  command->callback([&status, o] { status = save(*o); });
}

}  // namespace strobe::cli
