#include <fmt/format.h>

#include <vector>

#include "cli/commands.h"
#include "measure/benchmark.h"
#include "measure/roof.h"
#include "report/text.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cli {
namespace {

DType read_dtype(const std::string& name) {
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw InvalidArgument("dtype", fmt::format("is '{}', allowed is fp32, fp16 or bf16", name));
}

Problem choose_problem(const BenchOptions& options) {
  if (!options.problem.empty()) return Problem::parse(options.problem);
  Problem problem{.batch = options.batch,
                  .seqlen_q = options.seqlen,
                  .seqlen_k = options.seqlen_k,
                  .heads = options.heads,
                  .heads_k = options.heads_k,
                  .dim = options.dim,
                  .dtype = read_dtype(options.dtype),
                  .causal = options.causal};
  problem.validate();
  return problem;
}

const Implementation& choose_implementation(const BenchOptions& options, const Problem& problem) {
  const Registry& registry = Registry::instance();
  return options.implementation.empty() ? registry.best(problem)
                                        : registry.find(options.implementation);
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

void print_result(std::FILE* text, const lab::Benchmark& b, const lab::Roof& roof) {
  const lab::Statistics& ms = b.measurement.ms;
  const auto rate = [&b](double time) { return b.flops_per_second(time) / 1e9; };
  const auto line = [text](const char* what, const std::string& value) {
    fmt::print(text, "  {:<17}{}\n", what, value);
  };
  fmt::print(text, "{} Pass Results:\n", b.problem.pass == Pass::forward ? "Forward" : "Backward");
  line("Time (min):", fmt::format("{:.3f} ms", ms.min));
  line("Time (avg):", fmt::format("{:.3f} ms", ms.mean));
  line("Time (max):", fmt::format("{:.3f} ms", ms.max));
  line("Time (median):",
       fmt::format("{:.3f} ms of {} samples", ms.median, b.measurement.samples_ms.size()));
  line("GFLOP/s (peak):", fmt::format("{:.2f}", rate(ms.min)));
  line("GFLOP/s (avg):", fmt::format("{:.2f}", rate(ms.mean)));
  line("Of FMA peak:", fmt::format("{:.1f} % of {:.1f} GFLOP/s fp32, measured beside it (median)",
                                   100 * b.flops_per_second(ms.median) / roof.flops_per_second,
                                   roof.flops_per_second / 1e9));
  line("Memory:",
       fmt::format("{} inputs, {} outputs, {} workspace", lab::bytes_text(b.operands.inputs),
                   lab::bytes_text(b.operands.outputs),
                   lab::bytes_text(static_cast<std::int64_t>(b.workspace_bytes))));
  line("Error:", accuracy_text(b.accuracy));
  fmt::print(text, "\n");
}

/// Exit status by what became of it; the reason goes to the standard error.
int conclude(const lab::Benchmark& b) {
  if (b.status == lab::Status::ok) return kDone;
  fmt::print(stderr, "strobe: {}\n", lab::reason_text(b.implementation, b.reason));
  return b.status == lab::Status::failed ? kCheckFailed : kNotPossible;
}

}  // namespace

int bench(const BenchOptions& options) {
  Problem problem = choose_problem(options);
  std::vector<Pass> passes{Pass::forward};
  if (!options.no_grad) passes.push_back(Pass::backward);
  problem.pass = passes.back();
  const Implementation& implementation = choose_implementation(options, problem);
  const PlanOptions plan_options{.threads = options.threads};
  const Plan plan = implementation.plan(problem, plan_options);  // fails before the memory is taken
  lab::RecordWriter records = options.output.records();

  const lab::Roof roof = lab::measure_roof(options.threads);
  std::FILE* text = options.output.text();
  fmt::print(text, "Problem: {}\nImplementation: {} ({})\n\n", problem.text(),
             implementation.name(), lab::tuning_text(plan.tuning));
  lab::Operands operands({.problem = problem});
  for (const Pass pass : passes) {
    const lab::SpotCheck check(operands, pass);
    const lab::Benchmark result =
        lab::benchmark(implementation, operands, pass, check, plan_options,
                       {.samples = options.repeats, .min_samples = options.repeats});
    records.write(result, roof);
    if (!result.measurement.samples_ms.empty()) print_result(text, result, roof);
    if (const int status = conclude(result); status != kDone) return status;
  }
  return kDone;
}

}  // namespace strobe::cli
