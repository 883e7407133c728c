#include "experiment/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiment/subjects.h"
#include "measure/in_order.h"
#include "measure/tuning.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::lab {
namespace {

struct OccupancySubject {
  Problem problem{};
  std::string architecture{};
  std::vector<std::string> names{};
  std::function<CompiledKernel(std::size_t)> compile{};
  bool variants = false;  ///< which can be timed on the problem
};

/// The word after `name` in a configuration, "128" after "kBlockQueries".
std::string constant_of(const std::string& configuration, const std::string& name) {
  const std::size_t found = configuration.find(name + " ");
  if (found == std::string::npos) return "?";
  const std::size_t begin = found + name.size() + 1;
  return configuration.substr(begin, configuration.find_first_of(", ", begin) - begin);
}

/// "bf16 d128 128x48", with "masked" where the configuration knows a window.
std::string short_name(const std::string& configuration) {
  const auto value = [&](const char* name) { return constant_of(configuration, name); };
  const bool masked = configuration.find("kWindow") != std::string::npos;
  return fmt::format("{} d{} {}x{}{}", value("kArithmetic"), value("kDim"), value("kBlockQueries"),
                     value("kBlockKeys"), masked ? " masked" : "");
}

/// The tiles that a problem can be cut into, or, where a kernel has only one way, what it is
/// compiled to for the usual problems.
OccupancySubject choose_occupancy_subject(const ExperimentSetup& setup,
                                          const std::string& architecture) {
  constexpr std::size_t kFew = 4;
  OccupancySubject subject{.architecture = architecture};
  subject.problem =
      setup.problem({.batch = 2, .seqlen_q = 4096, .heads = 16, .dim = 128, .dtype = DType::bf16});
  subject.names = kernel_variants(architecture, subject.problem, setup.options);
  subject.variants = !subject.names.empty();
  if (subject.variants) {
    if (setup.quick && subject.names.size() > kFew) subject.names.resize(kFew);
    subject.compile = [&setup, subject](std::size_t i) {
      PlanOptions options = setup.options;
      options.variant = subject.names[i];
      return compile_variant(subject.architecture, subject.problem, options);
    };
    return subject;
  }
  std::vector<KernelConfiguration> all = kernel_configurations(architecture);
  std::erase_if(all, [](const auto& each) { return each.kernel != "portable_forward"; });
  if (setup.quick && all.size() > kFew) all.resize(kFew);
  for (const KernelConfiguration& each : all)
    subject.names.push_back(short_name(each.configuration));
  subject.compile = [all](std::size_t i) { return compile_kernel(all[i]); };
  return subject;
}

std::string architecture_of(const ExperimentSetup& setup) {
  if (!setup.architecture.empty() && !setup.on_cpu()) {
    throw InvalidArgument("--arch", fmt::format("is '{}', but --device {} is compiled for itself; "
                                                "leave one of them out",
                                                setup.architecture, to_string(setup.device)));
  }
  if (!setup.architecture.empty()) return setup.architecture;
  if (setup.on_cpu()) return "sm_90a";
  return cuda_status().devices.at(static_cast<std::size_t>(setup.device.index)).architecture;
}

std::vector<OccupancyRow> compile_all(const ExperimentSetup& setup,
                                      const OccupancySubject& subject) {
  const Multiprocessor limits = multiprocessor_of(subject.architecture);
  std::vector<OccupancyRow> rows;
  make_in_order<CompiledKernel>(
      subject.names.size(), machine().cores, subject.compile,
      [&](std::size_t i, const CompiledKernel& compiled) {
        setup.announce(fmt::format("{} of {} compiled", i + 1, subject.names.size()));
        rows.push_back({.name = subject.names[i],
                        .compiled = compiled,
                        .residency = residency_of(compiled, limits)});
      });
  return rows;
}

/// Where there is a GPU, all of them on it.
void time_variants(const ExperimentSetup& setup, const OccupancySubject& subject,
                   std::vector<OccupancyRow>& rows) {
  if (setup.on_cpu() || !subject.variants) return;
  const TuningPolicy policy{.budget_s = setup.sampling.budget_s * static_cast<double>(rows.size()),
                            .threads = machine().cores};
  const Tuning tuning =
      tune(flash_on(setup.device), subject.problem, setup.options, subject.names, policy,
           [&](std::size_t, std::size_t, const std::string& what) { setup.announce(what); });
  for (const VariantResult& result : tuning.variants) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const OccupancyRow& each) {
      return each.name == result.variant;
    });
    if (row != rows.end() && result.ratio > 0) row->timed = result.benchmark;
  }
}

std::string occupancy_table(const std::vector<OccupancyRow>& rows) {
  Table table({{"Variant"},
               {"Threads", kRight},
               {"Registers", kRight},
               {"Spilled", kRight},
               {"Shared", kRight},
               {"Blocks", kRight},
               {"Occupancy", kRight},
               {"Limit"},
               {"Time (ms)", kRight}});
  for (const OccupancyRow& row : rows) {
    table.add_row({row.name, fmt::format("{}", row.compiled.threads),
                   fmt::format("{}", row.compiled.registers),
                   fmt::format("{} B", row.compiled.spill_bytes),
                   bytes_text(row.compiled.shared_bytes), fmt::format("{}", row.residency.blocks),
                   fmt::format("{:.1f} %", 100 * row.residency.occupancy), row.residency.limit,
                   row.timed ? fmt::format("{:.4f}", row.ms()) : "-"});
  }
  return table.render();
}

std::string occupancy_chart(const std::vector<OccupancyRow>& rows,
                            const OccupancySubject& subject) {
  const bool timed =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.timed.has_value(); });
  LineChart::Line points{.label = "a variant", .joined = false};
  for (const OccupancyRow& row : rows) {
    if (timed && !row.timed) continue;
    points.points.emplace_back(row.compiled.registers,
                               timed ? row.ms() : 100 * row.residency.occupancy);
  }
  return svg_of(
      LineChart{.title = fmt::format("{} on {}", subject.problem.text(), subject.architecture),
                .x_title = "Registers of a thread",
                .y_title = timed ? "Time (ms)" : "Occupancy (%)",
                .x_logarithmic = false,
                .y_logarithmic = false,
                .lines = {points}});
}

}  // namespace

Expectation the_usual_does_not_spill(const std::vector<OccupancyRow>& rows) {
  const auto spills = [](const OccupancyRow& row) { return row.compiled.spill_bytes > 0; };
  const auto others = std::count_if(rows.begin() + 1, rows.end(), spills);
  const int spilled = rows.front().compiled.spill_bytes;
  return {
      .expected = "the kernel that is taken keeps to its registers",
      .rule = "the first one, which is the usual, stores nothing that its registers do not hold",
      .seen = fmt::format("{} bytes; of the {} others {} spill", spilled, rows.size() - 1, others),
      .conclusion = Expectation::decide(spilled == 0)};
}

Expectation occupancy_is_low(const std::vector<OccupancyRow>& rows) {
  constexpr double kMost = 0.5;
  const double usual = rows.front().residency.occupancy;
  return {.expected = "attention runs on few threads that have much of the chip each",
          .rule = fmt::format("the first one's occupancy is at most {:.0f} %", 100 * kMost),
          .seen = fmt::format("{:.1f} %, limited by {}", 100 * usual, rows.front().residency.limit),
          .conclusion = Expectation::decide(usual <= kMost)};
}

Expectation speed_is_not_occupancy(const std::vector<OccupancyRow>& rows) {
  Expectation expectation{.expected = "occupancy does not decide which is the fastest",
                          .rule = "the fastest has not the highest occupancy of those timed",
                          .seen = "nothing was timed, which takes a GPU and variants"};
  const OccupancyRow* fastest = nullptr;
  double lowest = 1, highest = 0;
  for (const OccupancyRow& row : rows) {
    if (!row.timed) continue;
    if (fastest == nullptr || row.ms() < fastest->ms()) fastest = &row;
    lowest = std::min(lowest, row.residency.occupancy);
    highest = std::max(highest, row.residency.occupancy);
  }
  if (fastest == nullptr) return expectation;
  expectation.seen = "all that were timed have the same";
  if (lowest == highest) return expectation;
  expectation.seen = fmt::format("{} with {:.1f} %, the highest is {:.1f} %", fastest->name,
                                 100 * fastest->residency.occupancy, 100 * highest);
  expectation.conclusion = Expectation::decide(fastest->residency.occupancy < highest);
  return expectation;
}

Findings occupancy_experiment(const ExperimentSetup& setup) {
  const OccupancySubject subject = choose_occupancy_subject(setup, architecture_of(setup));
  std::vector<OccupancyRow> rows = compile_all(setup, subject);
  if (rows.empty()) throw Error("there is no kernel for " + subject.architecture);
  time_variants(setup, subject, rows);
  Findings findings{
      .subject = fmt::format(
          "{}, compiled for {}{}",
          subject.variants ? "ways to cut " + subject.problem.text()
                           : "the portable forward kernel, which has one way to "
                             "cut each problem",
          subject.architecture,
          subject.variants && setup.on_cpu() ? "; --device cuda times them as well" : ""),
      .tables = occupancy_table(rows),
      .expectations = {the_usual_does_not_spill(rows), occupancy_is_low(rows),
                       speed_is_not_occupancy(rows)},
      .why =
          "A tile's scores and sums live in registers, and keys and values in shared memory, so "
          "large tiles leave room for one or two blocks. They hide latency by copies that run "
          "ahead instead of by other warps; what does not fit into registers goes to memory at "
          "every step, and undoes that.",
      .files = {{"occupancy.svg", occupancy_chart(rows, subject)}}};
  for (const OccupancyRow& row : rows) {
    findings.results.push_back({{"variant", row.name},
                                {"architecture", subject.architecture},
                                {"threads", row.compiled.threads},
                                {"registers", row.compiled.registers},
                                {"spill_bytes", row.compiled.spill_bytes},
                                {"shared_bytes", row.compiled.shared_bytes},
                                {"blocks", row.residency.blocks},
                                {"occupancy", row.residency.occupancy},
                                {"limit", row.residency.limit}});
    if (row.timed) findings.timed.push_back({*row.timed, findings.results.back()});
  }
  return findings;
}

}  // namespace strobe::lab
