#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/benchmark.h"
#include "measure/roofline.h"
#include "report/text.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/execution.h"

namespace strobe::cli {
namespace {

struct BenchOptions {
  ProblemOptions problem{};
  SamplingOptions sampling{};
  PassOptions passes{};
  std::string implementation{};
  RunOptions run{};
  OutputOptions output{};
};

const Implementation& choose_implementation(const BenchOptions& options, const Problem& problem) {
  if (!options.implementation.empty()) return *options.run.find({options.implementation}).front();
  return Registry::instance().best(problem, options.run.kind());
}

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

/// Time of one implementation on one problem.
int bench(const BenchOptions& options) {
  options.run.require_device();
  Problem problem = options.problem.choose();
  const std::vector<Pass> passes = options.passes.choose(options.problem);
  if (passes.size() > 1 && !options.run.variant.empty())
    throw InvalidArgument("--variant", "is of one pass; add --pass forward or --pass backward");
  problem.pass = passes.back();
  const Implementation& implementation = choose_implementation(options, problem);
  const PlanOptions plan_options = options.run.plan();
  const Plan plan = implementation.plan(problem, plan_options);  // fails before the memory is taken
  lab::RecordWriter records = options.output.records();
  lab::Operands operands({.problem = problem});
  const lab::Peaks peaks =
      lab::peaks_of(lab::device_of(implementation, plan_options), options.run.threads);

  std::FILE* text = options.output.text();
  Problem shown = problem;
  shown.pass = passes.front();
  fmt::print(text, "Problem: {}\nImplementation: {} ({})\n\n", shown.text(),
             full_name(implementation), lab::tuning_text(plan.tuning));
  std::fflush(text);
  const std::array contenders{&implementation};
  for (const Pass pass : passes) {
    const lab::SpotCheck check(operands, pass);
    const lab::Benchmark result =
        lab::benchmark(contenders, operands, pass, &check, plan_options, options.sampling.policy())
            .front();
    records.write(result, peaks);
    if (result.timed()) print_result(text, result, peaks);
    warn_of_slowdown(result);
    std::fflush(text);
    if (const int status = conclude(result); status != kDone) return status;
  }
  return kDone;
}

}  // namespace

void add_bench(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("bench", "Time of one problem: forward, and backward");
  auto o = std::make_shared<BenchOptions>();
  o->problem.add_to(*command);
  o->passes.add_to(*command);
  command->add_option("--impl", o->implementation, "Implementation; the best one if not given")
      ->type_name("NAME");
  o->run.add_to(*command);
  o->run.add_variant_to(*command);
  o->sampling.add_to(*command);
  o->sampling.add_pinning_to(*command);
  o->output.add_to(*command);
  command->footer(
      "Defaults: batch 2, seqlen 1024, nheads 8, headdim 64, fp32.\n\n"
      "Example:\n  strobe bench --batch 1 --seqlen 512 --nheads 4 --headdim 64 --causal");
  command->callback([&status, o] { status = bench(*o); });
}

}  // namespace strobe::cli
