#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/peaks.h"
#include "measure/tuning.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

struct TuneOptions {
  ProblemOptions problem{};
  PassOptions passes{};
  std::string implementation = "flash";
  std::vector<std::string> variants{};  ///< none: all there are
  RunOptions run{};
  double budget_s = 30;
  bool list = false;
  std::string architecture{};
  bool dry_run = false;
  OutputOptions output{};
};

/// The usual defaults, but in a dtype that there are several ways to compute in.
Problem choose_problem(const TuneOptions& options, Pass pass) {
  ProblemOptions wanted = options.problem;
  if (wanted.problem.empty()) wanted.settings.try_emplace("dtype", "bf16");
  Problem problem = wanted.choose();
  problem.pass = pass;
  return problem;
}

const Implementation& implementation_of(const TuneOptions& options) {
  return *options.run.find({options.implementation}).front();
}

std::vector<std::string> all_variants(const TuneOptions& options, const Problem& problem) {
  const Implementation& implementation = implementation_of(options);
  const PlanOptions plan = options.run.plan();
  std::vector<std::string> all = options.architecture.empty()
                                     ? implementation.variants(problem, plan)
                                     : kernel_variants(options.architecture, problem, plan);
  if (!all.empty()) return all;
  throw Error(
      fmt::format("{} has only one way to compute {}, so there is nothing to tune; "
                  "cuda:flash has several "
                  "for most problems in bf16 and fp16 on Hopper, which is sm_90a",
                  full_name(implementation), problem.text()));
}

/// Those asked for beside the usual one, or all.
std::vector<std::string> choose_variants(const TuneOptions& options, const Problem& problem) {
  std::vector<std::string> all = all_variants(options, problem);
  if (options.variants.empty()) return all;
  std::vector<std::string> some{all.front()};
  for (const std::string& variant : options.variants) {
    if (std::find(some.begin(), some.end(), variant) == some.end()) some.push_back(variant);
  }
  return some;
}

int list_variants(const TuneOptions& options, const Problem& problem, lab::RecordWriter& records) {
  const std::vector<std::string> all = all_variants(options, problem);
  std::FILE* text = options.output.text();
  fmt::print(text, "{}: {} variants, the first is the usual one\n", problem.text(), all.size());
  for (const std::string& variant : all) {
    fmt::print(text, "  {}\n", variant);
    records.write(lab::record_of_kind(
        "variant",
        {{"problem", problem.text()}, {"variant", variant}, {"usual", variant == all.front()}}));
  }
  return kDone;
}

/// A value of the tuning record, "-" if it has none.
std::string tuning_value(const TuningRecord& tuning, std::string_view name) {
  for (const auto& [key, value] : tuning) {
    if (key == name) return value;
  }
  return "-";
}

std::vector<std::string> row_of(const lab::VariantResult& result) {
  const lab::Benchmark& b = result.benchmark;
  const lab::Statistics& ms = b.measurement.ms;
  const bool timed = result.ratio > 0;
  return {result.variant,
          tuning_value(b.tuning, "registers"),
          tuning_value(b.tuning, "shared"),
          timed ? fmt::format("{:.4f}", ms.median) : "-",
          ms.ci95 ? fmt::format("{:.1f} %", 100 * ms.relative_uncertainty()) : "-",
          timed ? fmt::format("{:.3f}", result.ratio) : "-",
          b.status == lab::Status::ok ? std::string(lab::name_of(b.accuracy.verdict))
                                      : std::string(lab::name_of(b.status))};
}

void print_table(std::FILE* text, const Problem& problem, const lab::Tuning& tuning) {
  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Variant"},
                    {"Registers", kRight},
                    {"Shared", kRight},
                    {"Time (ms)", kRight},
                    {"+/-", kRight},
                    {"Of usual", kRight},
                    {"Check"}});
  std::vector<const lab::VariantResult*> rows;
  for (const lab::VariantResult& result : tuning.variants) rows.push_back(&result);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    const auto order = [](double ratio) { return ratio > 0 ? ratio : 1e9; };
    return order(a->ratio) < order(b->ratio);
  });
  for (const lab::VariantResult* row : rows) table.add_row(row_of(*row));
  fmt::print(text, "{}\n{}", problem.text(), table.render());
  for (const lab::VariantResult* row : rows) {
    if (!row->benchmark.reason.empty())
      fmt::print(text, "{}\n", lab::reason_text(row->variant, row->benchmark.reason));
  }
}

void print_conclusion(std::FILE* text, const lab::Tuning& tuning, bool kept) {
  const lab::VariantResult& usual = tuning.usual();
  if (!tuning.comparable()) {
    fmt::print(text, "The usual variant, {}, does not work, so there is no comparison.\n\n",
               usual.variant);
  } else if (!tuning.improved()) {
    fmt::print(text, "No variant is faster than the usual one, {}, by more than the noise.\n\n",
               usual.variant);
  } else {
    fmt::print(text, "Fastest: {}. The usual one, {}, takes {:.1f} % longer.\n{}.\n\n",
               tuning.winner().variant, usual.variant, 100 * tuning.loss(),
               kept ? "Plans of this problem on this GPU take it from now on; kept in " +
                          kept_variants_folder()
                    : "It is not kept");
  }
}

/// Common records with what the tuning adds.
void write_records(const TuneOptions& options, lab::RecordWriter& records,
                   const lab::Tuning& tuning, bool kept) {
  if (options.output.json.empty()) return;
  const lab::Peaks peaks = lab::peaks_of(tuning.usual().benchmark.device, options.run.threads);
  for (const lab::VariantResult& result : tuning.variants) {
    nlohmann::json record = lab::record_of(result.benchmark, peaks);
    const bool winner = tuning.improved() && &result == &tuning.winner();
    record["tuning"] = {{"variant", result.variant},
                        {"usual", tuning.usual().variant},
                        {"winner", winner},
                        {"kept", winner && kept},
                        {"usual_loss", tuning.loss()}};
    if (result.ratio > 0) record["tuning"]["ratio"] = result.ratio;
    records.write(record);
  }
}

/// What was kept before is forgotten where all were tried and the usual one is as good as any.
bool keep(const TuneOptions& options, const Implementation& implementation, const Problem& problem,
          const lab::Tuning& tuning) {
  const bool all_tried = options.variants.empty();
  if (options.dry_run || !tuning.comparable()) return false;
  if (!tuning.improved() && !all_tried) return false;
  std::optional<TunedVariant> tuned;
  if (tuning.improved()) {
    tuned = {.variant = tuning.winner().variant,
             .usual = tuning.usual().variant,
             .ms = tuning.winner().benchmark.measurement.ms.median,
             .usual_ms = tuning.judgement.then_ms};
  }
  try {
    implementation.keep_variant(problem, options.run.plan(), tuned);
  } catch (const Error& error) {  // what was measured is worth showing all the same
    fmt::print(stderr, "strobe: {}\n", error.what());
    return false;
  }
  return tuned.has_value();
}

int exit_status(const TuneOptions& options, const lab::Tuning& tuning, bool kept) {
  for (const lab::VariantResult& result : tuning.variants) {
    if (result.benchmark.status == lab::Status::failed) return kCheckFailed;
  }
  const bool wanted = tuning.improved() && !options.dry_run;
  return tuning.comparable() && kept == wanted ? kDone : kNotPossible;
}

int tune_pass(const TuneOptions& options, const Problem& problem, lab::RecordWriter& records) {
  const Implementation& implementation = implementation_of(options);
  const std::vector<std::string> variants = choose_variants(options, problem);
  Progress progress(lab::tuning_steps(variants.size()));
  const lab::TuningPolicy policy{
      .budget_s = options.budget_s,
      .threads = options.run.threads > 0 ? options.run.threads : machine().cores};
  const lab::Tuning tuning = lab::tune(
      implementation, problem, options.run.plan(), variants, policy,
      [&](std::size_t done, std::size_t, const std::string& what) { progress.show(done, what); });
  progress.clear();
  std::FILE* text = options.output.text();
  print_table(text, problem, tuning);
  const bool kept = keep(options, implementation, problem, tuning);
  print_conclusion(text, tuning, kept);
  write_records(options, records, tuning, kept);
  warn_of_slowdown(tuning.usual().benchmark);  // what it says would be the same of all
  return exit_status(options, tuning, kept);
}

void require_gpu(const RunOptions& run) {
  const std::string unavailable = cuda_status().unavailable;
  if (!unavailable.empty()) {
    throw Error(
        fmt::format("there is no GPU to tune on: {}; --list --arch sm_90a, say, shows what "
                    "would be tried",
                    unavailable));
  }
  run.require_device();
}

/// Every variant of a problem; the winner is kept.
int tune(TuneOptions options) {
  if (!options.run.device) options.run.device = Device{.kind = Device::Kind::cuda};
  if (options.architecture.empty() && options.run.kind() != Device::Kind::cpu)
    require_gpu(options.run);
  lab::RecordWriter records = options.output.records();
  int worst = kDone;
  for (const Pass pass : options.passes.choose(options.problem)) {
    const Problem problem = choose_problem(options, pass);
    const int status = options.list ? list_variants(options, problem, records)
                                    : tune_pass(options, problem, records);
    worst = std::max(worst, status);
  }
  return worst;
}

}  // namespace

void add_tune(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "tune", "Time every way to cut a problem on this GPU, and keep the fastest for later plans");
  auto o = std::make_shared<TuneOptions>();
  o->problem.add_to(*command);
  o->passes.add_to(*command);
  command->add_option("--impl", o->implementation, "Implementation")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--variant", o->variants,
                   "These alone, with commas, beside the usual one; all if not given")
      ->delimiter(',')
      ->type_name("TEXTS");
  o->run.add_to(*command);
  command->add_option("--budget", o->budget_s, "Seconds to time them all in, once compiled")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  CLI::Option* const list = command->add_flag("--list", o->list, "Only say what would be tried");
  command
      ->add_option("--arch", o->architecture,
                   "With --list, for this architecture, sm_90a for instance, instead of the GPU")
      ->type_name("NAME")
      ->needs(list);
  command->add_flag("--dry-run", o->dry_run, "Keep nothing");
  o->output.add_to(*command);
  command->footer(
      "Defaults: batch 2, seqlen 1024, nheads 8, headdim 64, bf16.\n\n"
      "Example:\n  strobe tune --problem \"b2 s8192 h16 d128 bf16 causal\" --pass forward");
  command->callback([&status, o] { status = tune(*o); });
}

}  // namespace strobe::cli
