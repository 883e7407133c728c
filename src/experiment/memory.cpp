// Memory against the length of the sequence, up to where there is none left. What does not fit is
// known from its plan, and is not tried.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiment/growth.h"
#include "experiment/subjects.h"
#include "measure/resident.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/accelerator.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

/// One implementation at one length.
struct MemoryRow {
  std::int64_t length = 0;
  std::int64_t planned = 0;
  bool ran = false;
  std::optional<std::int64_t> seen{};  ///< what running it really took, where the system tells

  /// The larger of both: memory that the process still had from before is not seen to be taken.
  double bytes() const { return static_cast<double>(std::max(seen.value_or(0), planned)); }
};

/// One implementation at all lengths.
struct MemoryCurve {
  const Implementation* implementation = nullptr;
  std::vector<MemoryRow> rows{};

  std::int64_t longest_run() const {
    std::int64_t longest = 0;
    for (const MemoryRow& row : rows) longest = row.ran ? std::max(longest, row.length) : longest;
    return longest;
  }

  bool ran_out() const { return !rows.empty() && !rows.back().ran; }

  /// Of the last lengths that it ran at, where what does not grow matters least.
  std::optional<double> exponent() const {
    constexpr std::size_t kLast = 3;
    std::vector<std::pair<double, double>> points;
    for (const MemoryRow& row : rows) {
      if (row.ran) points.emplace_back(static_cast<double>(row.length), row.bytes());
    }
    if (points.size() < 2) return std::nullopt;
    if (points.size() > kLast) points.erase(points.begin(), points.end() - kLast);
    return growth_exponent(points);
  }
};

/// Bytes by which the memory in use grows while it is computed once, operands included.
std::optional<std::int64_t> seen_bytes(const ExperimentSetup& setup,
                                       const Implementation& implementation,
                                       const Problem& problem) {
  const auto compute = [&](const auto& measure) {
    Operands operands({.problem = problem});
    const auto execution = Execution::make(implementation, operands, problem.pass, setup.options);
    execution->run();
    return measure();
  };
  if (setup.on_cpu()) {
    const ResidentWatch watch;
    return compute([&] { return watch.growth(); });
  }
  const Accelerator& gpu = accelerator(setup.device);
  const std::int64_t before = gpu.free_bytes();
  return compute([&]() -> std::optional<std::int64_t> {
    gpu.wait();
    return before - gpu.free_bytes();
  });
}

MemoryRow try_length(const ExperimentSetup& setup, const Implementation& implementation,
                     Problem problem, std::int64_t length, std::int64_t limit) {
  problem.seqlen_q = length;
  setup.announce(fmt::format("{} at length {}", full_name(implementation), length));
  MemoryRow row{.length = length, .planned = planned_bytes(implementation, problem, setup.options)};
  if (row.planned > limit) return row;
  row.seen = seen_bytes(setup, implementation, problem);
  row.ran = true;
  return row;
}

/// Lengths double until the unfused computation has run out of memory and flash attention has gone
/// on for a while, or has run out too.
std::vector<MemoryCurve> climb(const ExperimentSetup& setup, const Problem& problem,
                               std::int64_t limit) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;
  constexpr int kFurther = 2;
  std::vector<MemoryCurve> curves{{.implementation = &flash_on(setup.device)},
                                  {.implementation = &unfused_on(setup.device)}};
  int further = 0;
  for (std::int64_t length = problem.seqlen_q; length <= kLongest && further < kFurther;
       length *= 2) {
    for (MemoryCurve& curve : curves) {
      if (curve.ran_out()) continue;
      curve.rows.push_back(try_length(setup, *curve.implementation, problem, length, limit));
    }
    if (curves.front().ran_out()) break;
    if (curves.back().ran_out()) ++further;
  }
  return curves;
}

/// What is done by default: enough to see it, in seconds.
std::int64_t memory_limit_of(const ExperimentSetup& setup) {
  constexpr std::int64_t kQuick = 64'000'000, kOnCpu = 1'000'000'000;
  const std::int64_t budget = memory_budget(setup);
  if (setup.memory_limit > 0) return budget;
  if (setup.quick) return std::min(budget, kQuick);
  return setup.on_cpu() ? std::min(budget, kOnCpu) : budget;
}

std::string curves_table(const std::vector<MemoryCurve>& curves) {
  Table table({{"Implementation"},
               {"Length", Align::right},
               {"Planned", Align::right},
               {"Seen", Align::right},
               {"Ran"}});
  for (const MemoryCurve& curve : curves) {
    for (const MemoryRow& row : curve.rows) {
      table.add_row({full_name(*curve.implementation), fmt::format("{}", row.length),
                     bytes_text(row.planned), row.seen ? bytes_text(*row.seen) : "-",
                     row.ran ? "yes" : "no, over the limit"});
    }
  }
  return table.render();
}

Expectation grows_as(const MemoryCurve& curve, const std::string& expected, double least,
                     double most) {
  Expectation expectation{
      .expected = expected,
      .rule = fmt::format("the exponent of the last lengths is between {} and {}", least, most),
      .seen = "it ran at fewer than two lengths"};
  const std::optional<double> exponent = curve.exponent();
  if (!exponent) return expectation;
  expectation.seen = fmt::format("{:.2f}", *exponent);
  expectation.conclusion = Expectation::decide(*exponent >= least && *exponent <= most);
  return expectation;
}

Expectation goes_further(const MemoryCurve& flash, const MemoryCurve& unfused, std::int64_t limit) {
  constexpr std::int64_t kTimes = 4;
  return {.expected = "flash attention goes on where the unfused computation has run out of memory",
          .rule = fmt::format("within {} its longest sequence is at least {} times as long",
                              bytes_text(limit), kTimes),
          .seen = fmt::format("{} against {}", flash.longest_run(), unfused.longest_run()),
          .conclusion = Expectation::decide(flash.longest_run() > 0 &&
                                            flash.longest_run() >= kTimes * unfused.longest_run())};
}

Expectation plans_tell_the_truth(const std::vector<MemoryCurve>& curves) {
  constexpr double kPart = 1.25, kBeside = 16e6;
  Expectation expectation{
      .expected = "nothing is taken behind the plan's back",
      .rule = fmt::format("what is seen is at most {} of what was planned and {}", kPart,
                          bytes_text(static_cast<std::int64_t>(kBeside))),
      .seen = "the system does not tell what is taken"};
  double worst = 0;
  for (const MemoryCurve& curve : curves) {
    for (const MemoryRow& row : curve.rows) {
      if (!row.seen) continue;
      const double allowed = kPart * static_cast<double>(row.planned) + kBeside;
      worst = std::max(worst, static_cast<double>(*row.seen) / allowed);
    }
  }
  if (worst == 0) return expectation;
  expectation.seen = fmt::format("at most {:.0f} % of that", 100 * worst);
  expectation.conclusion = Expectation::decide(worst <= 1);
  return expectation;
}

std::string memory_chart(const std::vector<MemoryCurve>& curves, std::int64_t limit,
                         const Problem& problem) {
  LineChart chart{.title = "Memory against the length: " + problem.text(),
                  .x_title = "Sequence length",
                  .y_title = "MB"};
  for (const MemoryCurve& curve : curves) {
    const std::string name = full_name(*curve.implementation);
    LineChart::Line& seen = chart.lines.emplace_back(LineChart::Line{.label = name});
    for (const MemoryRow& row : curve.rows) {
      if (row.ran) seen.points.emplace_back(static_cast<double>(row.length), row.bytes() / 1e6);
    }
    LineChart::Line& planned =
        chart.lines.emplace_back(LineChart::Line{.label = name + ", planned", .dashed = true});
    for (const MemoryRow& row : curve.rows) {
      planned.points.emplace_back(static_cast<double>(row.length),
                                  static_cast<double>(row.planned) / 1e6);
    }
  }
  const auto& rows = curves.front().rows;
  const double most = static_cast<double>(limit) / 1e6;
  chart.lines.push_back({.label = "limit",
                         .points = {{static_cast<double>(rows.front().length), most},
                                    {static_cast<double>(rows.back().length), most}},
                         .dashed = true});
  return svg_of(chart);
}

}  // namespace

Findings memory_experiment(const ExperimentSetup& setup) {
  const bool cpu = setup.on_cpu();
  Problem problem = setup.problem({.seqlen_q = cpu ? 256 : 1024,
                                   .heads = 1,
                                   .dim = 64,
                                   .dtype = cpu ? DType::fp32 : DType::bf16});
  problem.pass = Pass::forward;
  problem.seqlen_q = std::max<std::int64_t>(problem.seqlen_q, 1);
  const std::int64_t limit = memory_limit_of(setup);
  const std::vector<MemoryCurve> curves = climb(setup, problem, limit);
  const MemoryCurve &flash = curves.front(), &unfused = curves.back();
  Findings findings{
      .subject =
          fmt::format("{} and longer, within {}", subject_text(setup, problem), bytes_text(limit)),
      .tables = curves_table(curves),
      .expectations = {grows_as(unfused, "unfused, memory grows with the square of the length", 1.6,
                                2.1),
                       grows_as(flash, "flash attention's memory grows with the length", 0.5, 1.2),
                       goes_further(flash, unfused, limit), plans_tell_the_truth(curves)},
      .why =
          "The unfused computation keeps a score for every query and every key; flash attention "
          "keeps a tile of them for each thread or block, and sums that are as large as the "
          "output.",
      .files = {{"memory.svg", memory_chart(curves, limit, problem)}}};
  for (const MemoryCurve& curve : curves) {
    for (const MemoryRow& row : curve.rows) {
      findings.results.push_back(
          {{"implementation", full_name(*curve.implementation)},
           {"length", row.length},
           {"planned", row.planned},
           {"seen", row.seen ? nlohmann::json(*row.seen) : nlohmann::json(nullptr)},
           {"limit", limit},
           {"ran", row.ran}});
    }
  }
  return findings;
}

}  // namespace strobe::lab
