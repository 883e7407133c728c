// Flash attention against the unfused computation: how many kernels, how many bytes, how long.
#include <fmt/format.h>

#include <array>

#include "experiment/phases.h"
#include "experiment/subjects.h"
#include "experiment/traffic.h"
#include "measure/recorded_calls.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "report/trace.h"
#include "strobe/accelerator.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

/// One of the two, looked at from every side.
struct FusionSide {
  const Implementation* implementation = nullptr;
  Benchmark result{};
  std::string trace{};
  std::optional<int> kernels{};  ///< of one call
  Traffic modelled{};
  MeasuredTraffic measured{};
};

std::optional<int> kernels_of_a_call(const ExperimentSetup& setup,
                                     const Implementation& implementation, const Problem& problem,
                                     const Recording& recording) {
  if (setup.on_cpu()) return static_cast<int>(phases_of_a_call(recording).size());
  Operands operands({.problem = problem});
  const auto execution = Execution::make(implementation, operands, problem.pass, setup.options);
  execution->run();  // what is made for the first call is no part of others
  return accelerator(setup.device).count_kernels([&] { execution->run(); });
}

/// After it was timed: what watches a GPU stays.
FusionSide look_at(const ExperimentSetup& setup, const Implementation& implementation,
                   Benchmark result) {
  const Problem problem = result.problem;
  const std::array passes{problem.pass};
  const std::string name = full_name(implementation);
  FusionSide side{.implementation = &implementation, .result = std::move(result)};
  setup.announce("trace of " + name);
  const RecordedCalls calls =
      with_plans(record_plans(implementation, problem, passes, setup.options),
                 record_runs(implementation, problem, passes, setup.options, {.calls = 1}));
  side.trace = chrome_trace(all_tracks(calls)).dump(1) + "\n";
  side.kernels = kernels_of_a_call(setup, implementation, problem, calls.host);
  setup.announce("counters of " + name);
  side.measured = measure_traffic(implementation, problem, setup.options);
  return side;
}

std::string sides_table(const std::vector<FusionSide>& sides, const std::string& unit) {
  Table table({{"Implementation"},
               {unit, kRight},
               {"Read (MB)", kRight},
               {"Written (MB)", kRight},
               {"Counted (MB)", kRight},
               {"Memory (MB)", kRight},
               {"Time (ms)", kRight},
               {"TFLOP/s", kRight},
               {"Check"}});
  for (const FusionSide& side : sides) {
    const Benchmark& b = side.result;
    const double ms = b.measurement.ms.median;
    table.add_row({b.implementation, side.kernels ? fmt::format("{}", *side.kernels) : "-",
                   megabytes_text(side.modelled.read), megabytes_text(side.modelled.written),
                   side.measured.bytes ? megabytes_text(*side.measured.bytes) : "-",
                   megabytes_text(static_cast<double>(b.memory.peak())), fmt::format("{:.3f}", ms),
                   fmt::format("{:.4f}", b.flops_per_second(ms) / 1e12),
                   std::string(name_of(b.accuracy.verdict))});
  }
  return table.render();
}

Expectation one_kernel(const FusionSide& flash, const FusionSide& unfused,
                       const std::string& unit) {
  Expectation expectation{
      .expected = "flash attention is one kernel, the unfused computation three or more",
      .rule = fmt::format("{} of a call: 1, and at least 3", unit),
      .seen = "they could not be counted here"};
  if (!flash.kernels || !unfused.kernels) return expectation;
  expectation.seen = fmt::format("{} and {}", *flash.kernels, *unfused.kernels);
  expectation.conclusion = Expectation::decide(*flash.kernels == 1 && *unfused.kernels >= 3);
  return expectation;
}

Expectation fewer_bytes(const FusionSide& flash, const FusionSide& unfused) {
  constexpr double kTimes = 2;
  const bool counted = flash.measured.bytes && unfused.measured.bytes;
  const double few = counted ? *flash.measured.bytes : flash.modelled.total();
  const double many = counted ? *unfused.measured.bytes : unfused.modelled.total();
  return {.expected = "flash attention moves fewer bytes, for the scores never reach memory",
          .rule = fmt::format("the unfused computation moves at least {} times as many, {}", kTimes,
                              counted ? "as counted" : "by the model, as nothing is counted here"),
          .seen = fmt::format("{:.2f} times: {} MB against {} MB", many / few, megabytes_text(many),
                              megabytes_text(few)),
          .conclusion = Expectation::decide(many >= kTimes * few)};
}

Expectation less_time(const FusionSide& flash, const FusionSide& unfused) {
  const double ratio = unfused.result.measurement.ms.median / flash.result.measurement.ms.median;
  return {.expected = "flash attention takes less time",
          .rule = "the 95 % intervals of the two medians do not overlap, and its is the lower",
          .seen = fmt::format("{:.2f} times as fast", ratio),
          .conclusion = is_faster(flash.result, unfused.result)};
}

std::string bytes_chart(const Problem& problem, const FusionSide& flash,
                        const std::vector<PhaseTraffic>& phases) {
  BarChart chart{.title = "Bytes of a forward pass, by the model: " + problem.text(), .unit = "MB"};
  const auto add = [&chart](const std::string& label, double bytes, std::size_t kind) {
    chart.bars.push_back({label, bytes / 1e6, kind});
  };
  for (const PhaseTraffic& phase : phases) {
    add("unfused, " + phase.phase + ", read", phase.bytes.read, 1);
    add("unfused, " + phase.phase + ", written", phase.bytes.written, 1);
  }
  add("flash, read", flash.modelled.read, 0);
  add("flash, written", flash.modelled.written, 0);
  return svg_of(chart);
}

Problem usual_problem(const ExperimentSetup& setup) {
  if (!setup.on_cpu()) {
    return {.batch = setup.quick ? 4 : 32,
            .seqlen_q = setup.quick ? 1024 : 4096,
            .heads = 16,
            .dim = 128,
            .dtype = DType::fp16};
  }
  return {.batch = 1,
          .seqlen_q = setup.quick ? 512 : 2048,
          .heads = 8,
          .dim = 64,
          .dtype = DType::fp32};
}

nlohmann::json traffic_record(const FusionSide& side) {
  nlohmann::json record{{"modelled_read", side.modelled.read},
                        {"modelled_written", side.modelled.written},
                        {"counted_by", side.measured.by}};
  if (side.kernels) record["kernels"] = *side.kernels;
  if (side.measured.bytes) record["counted"] = *side.measured.bytes;
  return record;
}

}  // namespace

Findings fusion_experiment(const ExperimentSetup& setup) {
  const Implementation &fused = flash_on(setup.device), &unfused = unfused_on(setup.device);
  Problem problem = fitting_problem(setup, usual_problem(setup), [&](const Problem& p) {
    return planned_bytes(unfused, p, setup.options);
  });
  problem.pass = Pass::forward;
  setup.announce("times");
  std::vector<Benchmark> results = time_rivals(setup, {&fused, &unfused}, problem);
  require_timed(results);
  std::vector<FusionSide> sides{look_at(setup, fused, std::move(results[0])),
                                look_at(setup, unfused, std::move(results[1]))};
  const std::vector<PhaseTraffic> phases = unfused_traffic(problem);
  const std::int64_t rows = query_rows_of(sides[0].result.tuning);
  sides[0].modelled = flash_traffic(problem, rows > 0 ? rows : problem.seqlen_q);
  sides[1].modelled = total_of(phases);
  const std::string unit = setup.on_cpu() ? "Phases" : "Kernels";
  Findings findings{
      .subject = subject_text(setup, problem),
      .tables = sides_table(sides, unit) +
                (sides[0].measured.bytes ? "" : "Nothing counted: " + sides[0].measured.by + "\n"),
      .expectations = {one_kernel(sides[0], sides[1], unit), fewer_bytes(sides[0], sides[1]),
                       less_time(sides[0], sides[1])},
      .why =
          "Unfused, scores and weights, a number for every query and key, go to memory and come "
          "back between the steps. Flash attention keeps a block of queries where it computes, "
          "lets keys and values pass by, and corrects its sums when a larger score turns up; "
          "only queries, keys, values and the output are moved.",
      .files = {{"trace_flash.json", sides[0].trace},
                {"trace_unfused.json", sides[1].trace},
                {"fusion.svg", bytes_chart(problem, sides[0], phases)}}};
  for (const FusionSide& side : sides)
    findings.timed.push_back({side.result, traffic_record(side)});
  return findings;
}

}  // namespace strobe::lab
