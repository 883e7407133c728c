#include "cli/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output_file.h"
#include "measure/recorded_calls.h"
#include "measure/roofline.h"
#include "report/text.h"
#include "report/trace.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/execution.h"

namespace strobe::cli {
namespace {

std::string accuracy_text(const lab::Accuracy& accuracy) {
  if (!accuracy.measured) return fmt::format("not checked ({})", accuracy.scope);
  const char* const verdict = accuracy.verdict == lab::Verdict::pass ? "PASS"
                              : accuracy.verdict == lab::Verdict::fail
                                  ? "FAIL"
                                  : "no verdict without the baseline";
  return fmt::format("max {}, mean {} against the oracle ({}), {}",
                     lab::error_text(accuracy.max_error), lab::error_text(accuracy.mean_error),
                     accuracy.scope, verdict);
}

std::string samples_text(const lab::Benchmark& b) {
  const lab::Statistics& ms = b.measurement.ms;
  const std::string interval =
      ms.ci95 ? fmt::format(", 95 % sure of {:.3f} to {:.3f}", ms.ci95->low, ms.ci95->high) : "";
  const std::size_t count = b.measurement.samples_ms.size();
  const std::string copies =
      b.copies > 1 ? fmt::format(" ({} copies of the operands)", b.copies) : "";
  return fmt::format("{:.3f} ms of {} sample{}{}, {} caches{}, by {}", ms.median, count,
                     count == 1 ? "" : "s", interval, name_of(b.cache()), copies,
                     b.measurement.clock);
}

std::string memory_text(const lab::Memory& memory) {
  const std::string resident =
      memory.resident ? fmt::format(" ({} measured)", lab::bytes_text(*memory.resident)) : "";
  return fmt::format("{}: {} inputs, {} outputs, {} workspace{}", lab::bytes_text(memory.peak()),
                     lab::bytes_text(memory.inputs), lab::bytes_text(memory.outputs),
                     lab::bytes_text(memory.workspace), resident);
}

std::string roofline_text(const lab::Benchmark& b, const lab::Peaks& peaks) {
  const lab::Roofline roof = lab::roofline(b, peaks);
  const double rate = b.flops_per_second(b.measurement.ms.median);
  if (roof.flops_per_second() <= 0) return "unknown";
  return fmt::format("{:.1f} % of {:.4g} TFLOP/s, {}-bound at {:.3g} FLOP/byte",
                     100 * rate / roof.flops_per_second(), roof.flops_per_second() / 1e12,
                     roof.memory_bound() ? "memory" : "compute", roof.intensity);
}

void print_result(std::FILE* text, const lab::Benchmark& b, const lab::Peaks& peaks) {
  const lab::Statistics& ms = b.measurement.ms;
  const auto rate = [&b](double time) {
    return fmt::format("{:.4g}", b.flops_per_second(time) / 1e12);
  };
  const auto line = [text](const char* what, const std::string& value) {
    fmt::print(text, "  {:<17}{}\n", what, value);
  };
  fmt::print(text, "{} Pass Results:\n", b.problem.pass == Pass::forward ? "Forward" : "Backward");
  line("Time (min):", fmt::format("{:.3f} ms", ms.min));
  line("Time (avg):", fmt::format("{:.3f} ms", ms.mean));
  line("Time (max):", fmt::format("{:.3f} ms", ms.max));
  line("Time (median):", samples_text(b));
  line("TFLOP/s (peak):", rate(ms.min));
  line("TFLOP/s (avg):", rate(ms.mean));
  line("Of the roofline:", roofline_text(b, peaks));
  if (const auto& call = b.measurement.call_ms)
    line("Call:", fmt::format("{:.1f} us of the host, at least", *call * 1e3));
  line("Memory:", memory_text(b.memory));
  line("Error:", accuracy_text(b.accuracy));
  const std::string state = lab::state_text(b.measurement.device.during.value_or(DeviceState{}));
  if (!state.empty()) line("While timed:", state);
  fmt::print(text, "\n");
}

/// Exit status by what became of it; the reason goes to the standard error.
int conclude(const lab::Benchmark& b) {
  if (b.status == lab::Status::ok) return kDone;
  fmt::print(stderr, "strobe: {}\n", lab::reason_text(b.implementation, b.reason));
  return b.status == lab::Status::failed ? kCheckFailed : kNotPossible;
}

/// "trace_b2_sq1024_h8_d64_fp32.json"
std::string trace_file(const Problem& problem) {
  std::string name = problem.text();
  const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0; };
  std::replace_if(name.begin(), name.end(), is_other, '_');
  return fmt::format("trace_{}.json", name);
}

/// What a call of each pass does, after everything is timed: what looks on has no part in the
/// times.
std::string trace_of(Recording plans, const BenchSubject& subject, const PlanOptions& options) {
  const lab::RecordedCalls calls =
      lab::with_plans(std::move(plans), lab::record_runs(*subject.implementation, subject.problem,
                                                         subject.passes, options, {.calls = 1}));
  if (!calls.device.refused.empty())
    fmt::print(stderr, "strobe: warning: the trace shows nothing of the GPU: {}\n",
               calls.device.refused);
  return lab::chrome_trace(lab::all_tracks(calls)).dump(1) + "\n";
}

/// Times a pass, and shows and keeps what came of it.
lab::Benchmark bench_pass(const BenchSubject& subject, Pass pass, lab::Operands& operands,
                          const lab::Peaks& peaks, const BenchOptions& options) {
  const lab::SpotCheck check(operands, pass);
  const std::array contenders{subject.implementation};
  lab::Benchmark result = lab::benchmark(contenders, operands, pass, &check, options.run.plan(),
                                         options.sampling.policy())
                              .front();
  if (result.timed()) print_result(options.output.text(), result, peaks);
  warn_of_slowdown(result);
  warn_of_low_peak(result, peaks);
  std::fflush(options.output.text());
  return result;
}

}  // namespace

BenchSubject choose_subject(const BenchOptions& options) {
  options.run.require_device();
  BenchSubject subject{.problem = options.problem.choose(),
                       .passes = options.passes.choose(options.problem)};
  if (subject.passes.size() > 1 && !options.run.variant.empty())
    throw InvalidArgument("--variant", "is of one pass; add --pass forward or --pass backward");
  subject.problem.pass = subject.passes.back();
  subject.implementation = options.implementation.empty()
                               ? &Registry::instance().best(subject.problem, options.run.where())
                               : options.run.find({options.implementation}).front();
  return subject;
}

BenchOutcome bench(const BenchOptions& options) {
  const BenchSubject subject = choose_subject(options);
  const Implementation& implementation = *subject.implementation;
  const PlanOptions plan_options = options.run.plan();
  if (options.calls > 0) {
    lab::call_only(implementation, subject.problem, subject.passes, plan_options, options.calls,
                   options.sampling.policy().gpu_cache == lab::Cache::cold);
    return {};
  }
  Problem shown = subject.problem;
  shown.pass = subject.passes.front();
  const std::string trace = options.profile && options.profile->empty()
                                ? trace_file(shown)
                                : options.profile.value_or("");
  if (!trace.empty()) {
    require_output("--profile", trace, options.output.force);
    require_own_file("--profile", trace, "--json", options.output.json);
  }
  lab::RecordWriter records = options.output.records();
  Recording plans;
  if (!trace.empty())
    plans = lab::record_plans(implementation, subject.problem, subject.passes, plan_options);
  // Fails before the memory is taken.
  const Plan plan = implementation.plan(subject.problem, plan_options);
  lab::Operands operands({.problem = subject.problem});
  BenchOutcome outcome{
      .peaks = lab::peaks_of(lab::device_of(implementation, plan_options), options.run.threads)};
  std::FILE* text = options.output.text();
  fmt::print(text, "Problem: {}\nImplementation: {} ({})\n", shown.text(),
             full_name(implementation), lab::tuning_text(plan.tuning));
  if (!trace.empty()) fmt::print(text, "Trace: {}\n", trace);
  fmt::print(text, "\n");
  std::fflush(text);
  for (const Pass pass : subject.passes) {
    outcome.results.push_back(bench_pass(subject, pass, operands, outcome.peaks, options));
    records.write(outcome.results.back(), outcome.peaks);
    outcome.status = conclude(outcome.results.back());
    if (outcome.status != kDone) return outcome;
  }
  if (!trace.empty()) {
    write_output("--profile", trace, trace_of(std::move(plans), subject, plan_options),
                 options.output.force);
  }
  return outcome;
}

void BenchOptions::add_to(CLI::App& command) {
  problem.add_to(command);
  passes.add_to(command);
  command.add_option("--impl", implementation, "Implementation; the best one if not given")
      ->type_name("NAME");
  run.add_to(command);
  run.add_variant_to(command);
  sampling.add_to(command);
  sampling.add_pinning_to(command);
}

void add_bench(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("bench", "Time of one problem: forward, and backward");
  auto o = std::make_shared<BenchOptions>();
  o->add_to(*command);
  o->output.add_to(*command);
  command
      ->add_option("--profile", o->profile,
                   "Also write what a call of each pass does, thread by thread, to a trace that "
                   "chrome://tracing and Perfetto open; named after the problem if not said")
      ->type_name("[FILE]")
      ->expected(0, 1);
  command
      ->add_option("--calls", o->calls,
                   "Only call each pass so often, and time nothing: for a profiler around it; on a "
                   "GPU with cold caches if --l2 flush is given")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->excludes("--profile")
      ->excludes("--json");
  command->get_option("--force")->description("Let --json and --profile replace files that exist");
  command->footer(
      "Defaults: batch 2, seqlen 1024, nheads 8, headdim 64, fp32.\n\n"
      "Example:\n  strobe bench --batch 1 --seqlen 512 --nheads 4 --headdim 64 --causal");
  command->callback([&status, o] { status = bench(*o).status; });
}

}  // namespace strobe::cli
