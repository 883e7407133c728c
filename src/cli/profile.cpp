#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/compare.h"
#include "cli/external_tools.h"
#include "cli/info.h"
#include "cli/output_folder.h"
#include "cli/profile_variables.h"
#include "report/kernel_summary.h"
#include "report/profile.h"
#include "report/roofline_svg.h"
#include "report/trace.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

struct ProfileOptions {
  BenchOptions bench{.sampling = {.budget_s = 2}};
  std::string folder = "profile_results";
  bool force = false;
};

/// What commands print, kept until everything is known.
class CapturedText {
 public:
  CapturedText() : file_(open_memstream(&data_, &size_)) {
    if (file_ == nullptr) throw OutOfMemory("no memory for the text of a command");
  }
  ~CapturedText() {
    std::fclose(file_);
    std::free(data_);
  }
  CapturedText(const CapturedText&) = delete;
  CapturedText& operator=(const CapturedText&) = delete;

  std::FILE* file() const { return file_; }

  std::string text() const {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

/// The texts of other commands on the same problem.
struct OtherCommands {
  CapturedText bench{}, compare{}, info{};
};

/// Each pass on its own: the spans of its plan, which come first.
lab::Profile begin_profile(const BenchSubject& subject, const PlanOptions& options) {
  lab::Profile profile;
  for (const Pass pass : subject.passes) {
    profile.passes.emplace_back().calls.host =
        lab::record_plans(*subject.implementation, subject.problem, std::array{pass}, options);
  }
  return profile;
}

/// What a pass does, and what the processor or the GPU counts meanwhile.
void look_closely(const BenchSubject& subject, const PlanOptions& options, lab::Profile& profile) {
  constexpr lab::CallLimit kRecorded{.calls = 10, .seconds = 1}, kCounted{.calls = 3};
  const Implementation& implementation = *subject.implementation;
  for (lab::PassProfile& pass : profile.passes) {
    const Problem& problem = pass.result.problem;
    pass.calls = lab::with_plans(
        std::move(pass.calls.host),
        lab::record_runs(implementation, problem, std::array{problem.pass}, options, kRecorded));
    if (pass.on_cpu())
      pass.counted = lab::count_calls(implementation, problem, options, kCounted);
    else
      pass.device_counts = lab::count_on_device(implementation, problem, options);
  }
}

/// Returns the status of a bench that failed.
int time_passes(BenchOptions options, std::FILE* text, lab::Profile& profile) {
  options.output.instead = text;
  BenchOutcome outcome = bench(options);
  if (outcome.status != kDone) return outcome.status;
  profile.peaks = outcome.peaks;
  profile.machine = hardware_text(outcome.peaks);
  for (std::size_t i = 0; i < profile.passes.size(); ++i) {
    profile.passes[i].roof = lab::roofline(outcome.results[i], outcome.peaks);
    profile.passes[i].result = std::move(outcome.results[i]);
  }
  return kDone;
}

/// How much faster the profiled implementation was than `standard` when they took turns.
std::optional<double> speedup_of(const Results& rows, const std::string& implementation) {
  const lab::Benchmark *ours = nullptr, *unfused = nullptr;
  for (const lab::Benchmark& row : rows) {
    if (!row.may_win()) continue;
    if (row.implementation == implementation) ours = &row;
    if (row.implementation == "standard" || row.implementation == "cuda:standard") unfused = &row;
  }
  if (ours == nullptr || unfused == nullptr || ours == unfused) return std::nullopt;
  return unfused->measurement.ms.median / ours->measurement.ms.median;
}

void compare_passes(const BenchOptions& options, std::FILE* text, lab::Profile& profile) {
  const SamplingOptions& sampling = options.sampling;
  CompareOptions others{
      .quick = true,
      .run = options.run,
      .sampling = {.cache = sampling.cache, .l2 = sampling.l2, .no_pin = sampling.no_pin}};
  others.run.variant.clear();
  others.output.instead = text;
  for (const lab::PassProfile& pass : profile.passes)
    others.problems.problems.push_back(pass.result.problem.text());
  const std::vector<Results> results = compare(others);
  for (std::size_t i = 0; i < results.size(); ++i)
    profile.passes[i].speedup = speedup_of(results[i], profile.first().implementation);
}

std::string kernels_text(const lab::Profile& profile) {
  std::string text;
  for (const lab::PassProfile& pass : profile.passes) {
    text += fmt::format("{}\n{}\n", pass.result.problem.text(),
                        lab::kernel_summary(lab::kernel_rows(pass.calls.host)));
    const DeviceActivity& device = pass.calls.device;
    if (!device.work.empty()) {
      text += fmt::format("{}, over the same calls\n{}\n", device.device,
                          lab::kernel_summary(lab::kernel_rows(device)));
    }
    if (!device.refused.empty()) text += fmt::format("Nothing of the GPU: {}\n\n", device.refused);
  }
  return text +
         "Total is the time of all calls together, with what is within them; self is without, "
         "and % is the part of all threads' time, or of the GPU's, that it makes.\n";
}

std::string roofline_picture(const lab::Profile& profile) {
  std::vector<lab::RooflinePoint> points;
  for (const lab::PassProfile& pass : profile.passes) {
    points.push_back({.label = fmt::format("{} {}", pass.result.implementation, pass.name()),
                      .intensity = pass.roof.intensity,
                      .flops_per_second = pass.flops_per_second()});
  }
  return lab::roofline_svg(profile.peaks, points, profile.first().problem.text());
}

std::string trace_file(std::string_view pass) {
  return fmt::format("trace_{}.json", pass);
}

void write_all(OutputFolder& folder, const lab::Profile& profile, const OtherCommands& others,
               const ToolResults& tools) {
  for (const std::string& name : tool_files()) folder.leave_out(name);
  for (const auto& [name, text] : tools.files) folder.write(name, text);
  for (const Pass pass : {Pass::forward, Pass::backward})
    folder.leave_out(trace_file(name_of(pass)));
  for (const lab::PassProfile& pass : profile.passes) {
    folder.write(trace_file(pass.name()),
                 lab::chrome_trace(lab::all_tracks(pass.calls)).dump(1) + "\n");
  }
  folder.write("baseline_benchmark.txt", others.bench.text());
  folder.write("comparison_results.txt", others.compare.text());
  folder.write("gpu_info.txt", others.info.text());
  folder.write("kernel_summary.txt", kernels_text(profile));
  folder.write("memory_metrics.txt", lab::memory_metrics_text(profile));
  folder.write("compute_metrics.txt", lab::compute_metrics_text(profile));
  folder.write("roofline.svg", roofline_picture(profile));
  folder.write("SUMMARY.md", lab::summary_text(profile, tools.tools));
}

/// One problem from every side, in a folder of files.
int profile_command(ProfileOptions options) {
  take_variables(options.bench.problem);
  OutputFolder folder(options.folder, options.force);
  const BenchSubject subject = choose_subject(options.bench);
  OtherCommands others;
  const PlanOptions plan_options = options.bench.run.plan();
  Progress progress(5);
  progress.show(0, "strobe bench");
  lab::Profile profile = begin_profile(subject, plan_options);
  if (const int status = time_passes(options.bench, others.bench.file(), profile); status != kDone)
    return status;
  progress.show(1, "strobe compare");
  options.bench.run.device = profile.peaks.device;  // whose opponents these are, also if not said
  compare_passes(options.bench, others.compare.file(), profile);
  progress.show(2, "strobe info");
  info({.threads = options.bench.run.threads, .output = {.instead = others.info.file()}});
  progress.show(3, "spans and counters");
  look_closely(subject, plan_options, profile);
  progress.show(4, "nsys and ncu");
  const ToolResults tools = run_tools(options.bench, subject);
  progress.clear();
  write_all(folder, profile, others, tools);
  fmt::print("{}Verdict: {}\nStart with {}.\n", others.bench.text(), lab::verdict_text(profile),
             (folder.path() / "SUMMARY.md").string());
  return kDone;
}

}  // namespace

void add_profile(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "profile", "Where the time of one problem goes: a folder of figures, traces and advice");
  auto o = std::make_shared<ProfileOptions>();
  o->bench.add_to(*command);
  command->add_option("--out", o->folder, "The folder to make")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_flag("--force", o->force, "Let --out replace the files of an earlier profile");
  command->footer(
      "BATCH, SEQLEN, NHEADS and HEADDIM in the environment stand in for options that are not "
      "given.\n\n"
      "Example:\n  strobe profile --batch 1 --seqlen 256 --nheads 4 --causal --no-grad --repeats "
      "10");
  command->callback([&status, o] { status = profile_command(*o); });
}

}  // namespace strobe::cli
