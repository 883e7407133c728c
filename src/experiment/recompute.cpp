#include "experiment/recompute.h"

#include <fmt/format.h>

#include <array>

#include "experiment/phases.h"
#include "experiment/subjects.h"
#include "measure/recorded_calls.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

/// On the CPU the phases say it.
RecomputedPart recomputed_part_of_phases(const ExperimentSetup& setup, const Problem& problem) {
  const Recording recording = record_runs(unfused_on(setup.device), problem,
                                          std::array{Pass::backward}, setup.options, {.calls = 1})
                                  .host;
  double again = 0, all = 0;
  for (const PhaseTime& phase : phases_of_a_call(recording)) {
    all += phase.ms;
    if (phase.name == "scores" || phase.name == "softmax") again += phase.ms;
  }
  return {.part = all > 0 ? again / all : 0,
          .by = "the phases \"scores\" and \"softmax\" of a backward pass"};
}

/// Its forward pass, which is that and one product more, is the most that it can be.
RecomputedPart recomputed_part_of_forward(const ExperimentSetup& setup, Problem problem,
                                          const Benchmark& backward, const std::string& why) {
  problem.pass = Pass::forward;
  const std::vector<Benchmark> forward = time_rivals(setup, {&unfused_on(setup.device)}, problem);
  require_timed(forward);
  return {.part = forward.front().measurement.ms.median / backward.measurement.ms.median,
          .by = fmt::format("a whole forward pass, which is more than that ({})", why)};
}

/// On a GPU its kernels say it, where somebody tells of them.
RecomputedPart recomputed_part_on_device(const ExperimentSetup& setup, const Problem& problem,
                                         const Benchmark& backward) {
  const DeviceActivity seen = record_runs(unfused_on(setup.device), problem,
                                          std::array{Pass::backward}, setup.options, {.calls = 3})
                                  .device;
  if (const auto part = recomputed_by_kernels(seen))
    return {.part = *part,
            .by = "the softmax and the product before it, by CUPTI's times of the kernels"};
  return recomputed_part_of_forward(
      setup, problem, backward,
      seen.refused.empty() ? "its kernels are not told apart" : seen.refused);
}

std::vector<RecomputeWay> ways_of(const Benchmark& flash, const Benchmark& unfused,
                                  const RecomputedPart& again) {
  const Problem& problem = unfused.problem;
  const std::int64_t rows = problem.total_q() * problem.heads;
  const std::int64_t lse = rows * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t weights =
      rows * problem.keys() * static_cast<std::int64_t>(size_of(problem.dtype));
  const double whole = unfused.measurement.ms.median;
  return {{"kept, unfused", whole * (1 - again.part), unfused.memory.peak(), weights},
          {"again, as a whole, unfused", whole, unfused.memory.peak(), lse},
          {"again, tile by tile, flash", flash.measurement.ms.median, flash.memory.peak(), lse}};
}

std::string recompute_table(const std::vector<RecomputeWay>& ways, const RecomputedPart& again) {
  Table table({{"Weights"},
               {"Backward (ms)", kRight},
               {"Memory of the pass", kRight},
               {"Kept between passes", kRight}});
  for (const RecomputeWay& way : ways) {
    table.add_row(
        {way.name, fmt::format("{:.3f}", way.ms), bytes_text(way.peak), bytes_text(way.kept)});
  }
  return table.render() +
         fmt::format("The first is the second without the {:.1f} % of its time that are {}.\n",
                     100 * again.part, again.by);
}

std::string recompute_chart(const std::vector<RecomputeWay>& ways, const Problem& problem) {
  BarChart chart{.title = "Backward pass: " + problem.text(), .unit = "ms"};
  for (std::size_t i = 0; i < ways.size(); ++i) chart.bars.push_back({ways[i].name, ways[i].ms, i});
  return svg_of(chart);
}

Problem usual_recompute_problem(const ExperimentSetup& setup) {
  if (!setup.on_cpu()) {
    return {.batch = 4,
            .seqlen_q = setup.quick ? 1024 : 4096,
            .heads = 16,
            .dim = 128,
            .dtype = DType::bf16};
  }
  return {.batch = 1,
          .seqlen_q = setup.quick ? 256 : 1024,
          .heads = 4,
          .dim = 64,
          .dtype = DType::fp32};
}

}  // namespace

// The product is a library's, of any name and number of kernels. It follows a kernel of ours, which
// brings its operand, and all of ours there are named for the rows they work on.
std::optional<double> recomputed_by_kernels(const DeviceActivity& seen) {
  std::int64_t all = 0, again = 0, product = 0;
  for (const DeviceWork& work : seen.work) {
    if (work.kind != DeviceWork::Kind::kernel) continue;
    const std::int64_t ns = work.end_ns - work.begin_ns;
    all += ns;
    if (!work.name.ends_with("_rows")) {
      product += ns;
      continue;
    }
    if (work.name == "softmax_rows") again += product + ns;
    product = 0;
  }
  if (again == 0) return std::nullopt;
  return static_cast<double>(again) / static_cast<double>(all);
}

Expectation tiles_are_faster(const RecomputeWay& kept, const RecomputeWay& tiles) {
  return {
      .expected = "computing weights again, tile by tile, takes less time than reading them",
      .rule = "flash attention's backward pass is faster than the unfused one with kept weights",
      .seen = fmt::format("{:.3f} ms against {:.3f} ms", tiles.ms, kept.ms),
      .conclusion = Expectation::decide(tiles.ms < kept.ms)};
}

Expectation little_is_kept(const RecomputeWay& kept, const RecomputeWay& tiles) {
  constexpr std::int64_t kTimes = 16;
  return {.expected = "far less has to be kept between the passes",
          .rule = fmt::format("at most a {}th", kTimes),
          .seen = fmt::format("{} against {}", bytes_text(tiles.kept), bytes_text(kept.kept)),
          .conclusion = Expectation::decide(tiles.kept * kTimes <= kept.kept)};
}

Expectation work_is_small(const RecomputedPart& again) {
  constexpr double kMost = 2.0 / 3;
  return {.expected = "computing the weights again is not most of the backward pass",
          .rule = fmt::format("less than {:.0f} % of the unfused one", 100 * kMost),
          .seen = fmt::format("{:.1f} %", 100 * again.part),
          .conclusion = Expectation::decide(again.part < kMost)};
}

Findings recompute_experiment(const ExperimentSetup& setup) {
  const Implementation &flash = flash_on(setup.device), &unfused = unfused_on(setup.device);
  Problem usual = usual_recompute_problem(setup);
  usual.pass = Pass::backward;
  Problem problem = fitting_problem(
      setup, usual, [&](const Problem& p) { return planned_bytes(unfused, p, setup.options); });
  problem.pass = Pass::backward;
  setup.announce("both backward passes");
  const std::vector<Benchmark> results = time_rivals(setup, {&flash, &unfused}, problem);
  require_timed(results);
  setup.announce("what computing weights again takes");
  const RecomputedPart again = setup.on_cpu()
                                   ? recomputed_part_of_phases(setup, problem)
                                   : recomputed_part_on_device(setup, problem, results.back());
  const std::vector<RecomputeWay> ways = ways_of(results.front(), results.back(), again);
  Findings findings{
      .subject = subject_text(setup, problem),
      .tables = recompute_table(ways, again),
      .expectations = {tiles_are_faster(ways.front(), ways.back()),
                       little_is_kept(ways.front(), ways.back()), work_is_small(again)},
      .why =
          "From the log-sum-exp of a row its weights follow with one product and an "
          "exponential. A tile of them is made where it is used, so they cost arithmetic "
          "instead of memory that would be written in one pass and read in the other.",
      .files = {{"recompute.svg", recompute_chart(ways, problem)}}};
  for (const Benchmark& result : results)
    findings.timed.push_back(
        {result, {{"recomputed_part", again.part}, {"recomputed_by", again.by}}});
  for (const RecomputeWay& way : ways) {
    findings.results.push_back(
        {{"weights", way.name}, {"ms", way.ms}, {"peak", way.peak}, {"kept", way.kept}});
  }
  return findings;
}

}  // namespace strobe::lab
