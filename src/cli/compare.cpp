#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/common.h"
#include "measure/benchmark.h"
#include "measure/roof.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

// What attention is used for, small enough for two cores: an encoder, a decoder's prefill, grouped
// heads, a sliding window, packed sequences, a step of decoding, a training step.
const std::vector<std::string> kRepresentative{"b2 sq1024 h8 d64 fp32",
                                               "b1 sq2048 h4 d128 fp32 causal",
                                               "b1 sq2048 h8 hk2 d64 bf16 causal",
                                               "b1 sq2048 h4 d64 fp16 causal w256:0",
                                               "lq512,77,900,300 h4 d64 bf16 causal",
                                               "b8 sq1 sk2048 h8 hk2 d128 bf16",
                                               "b1 sq256 h4 d64 fp32 causal bwd"};

lab::SamplingPolicy policy(const CompareOptions& options) {
  if (options.quick) return {.warmup = 1, .samples = 10, .min_samples = 2, .budget_s = 0.3};
  return {.warmup = 2, .samples = 30, .min_samples = 5, .budget_s = 3};
}

/// Rows of one problem, in the order of the implementations.
using Results = std::vector<lab::Benchmark>;

bool timed(const lab::Benchmark& b) {
  return !b.measurement.samples_ms.empty();
}

/// The implementation that the others' speed is told against: the last one that ran.
const lab::Benchmark* base_of(const Results& results) {
  const auto found = std::find_if(results.rbegin(), results.rend(), timed);
  return found == results.rend() ? nullptr : &*found;
}

std::vector<std::string> row_of(const lab::Benchmark& b, const lab::Benchmark* base,
                                const lab::Roof& roof) {
  if (!timed(b)) {
    return {b.implementation, std::string(lab::name_of(b.status)), "", "", "", "", "", ""};
  }
  const double ms = b.measurement.ms.median;
  const double rate = b.flops_per_second(ms);
  return {b.implementation,
          fmt::format("{:.3f}", ms),
          fmt::format("{:.1f}", rate / 1e9),
          fmt::format("{:.0f} %", 100 * rate / roof.flops_per_second),
          fmt::format("{:.1f}", static_cast<double>(b.total_bytes()) / 1e6),
          b.accuracy.measured ? lab::error_text(b.accuracy.max_error) : "-",
          std::string(lab::name_of(b.accuracy.verdict)),
          fmt::format("{:.2f}x", base->measurement.ms.median / ms)};
}

/// The name and the figure of the timed result with the least of something.
template <class Key>
const lab::Benchmark& least(const Results& results, const Key& key) {
  return *std::min_element(results.begin(), results.end(), [&](const auto& a, const auto& b) {
    return timed(a) != timed(b) ? timed(a) : key(a) < key(b);
  });
}

void print_results(std::FILE* text, const Results& results, const lab::Roof& roof) {
  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Time (ms)", kRight},
                    {"GFLOP/s", kRight},
                    {"Of FMA peak", kRight},
                    {"Memory (MB)", kRight},
                    {"Max error", kRight},
                    {"Check"},
                    {"Speed-up", kRight}});
  const lab::Benchmark* base = base_of(results);
  for (const lab::Benchmark& b : results) table.add_row(row_of(b, base, roof));
  fmt::print(text, "{}\n{}", results.front().problem.text(), table.render());
  for (const lab::Benchmark& b : results) {
    if (!b.reason.empty()) fmt::print(text, "{}\n", lab::reason_text(b.implementation, b.reason));
  }
  if (base != nullptr) {
    const lab::Benchmark fastest =
        least(results, [](const auto& b) { return b.measurement.ms.median; });
    const lab::Benchmark leanest = least(results, [](const auto& b) { return b.total_bytes(); });
    fmt::print(text, "Fastest: {} ({:.3f} ms). Lowest memory: {} ({}).\n", fastest.implementation,
               fastest.measurement.ms.median, leanest.implementation,
               lab::bytes_text(static_cast<std::int64_t>(leanest.total_bytes())));
  }
  fmt::print(text, "\n");
}

Results compare_on(const Problem& problem,
                   const std::vector<const Implementation*>& implementations,
                   const lab::SamplingPolicy& sampling) {
  lab::Operands operands({.problem = problem});
  const lab::SpotCheck check(operands, problem.pass);
  Results results;
  for (const Implementation* implementation : implementations) {
    results.push_back(lab::benchmark(*implementation, operands, problem.pass, check, {}, sampling));
  }
  return results;
}

int exit_status(const std::vector<Results>& all) {
  bool anything = false;
  for (const Results& results : all) {
    for (const lab::Benchmark& b : results) {
      if (b.status == lab::Status::failed) return kCheckFailed;
      anything = anything || b.status == lab::Status::ok;
    }
  }
  return anything ? kDone : kNotPossible;
}

}  // namespace

int compare(const CompareOptions& options) {
  const auto implementations = find_implementations(options.implementations);
  std::vector<Problem> problems;
  for (const auto& text : options.problems.empty() ? kRepresentative : options.problems) {
    problems.push_back(Problem::parse(text));
  }
  lab::RecordWriter records = options.output.records();
  std::FILE* text = options.output.text();
  const Machine here = machine();
  const lab::Roof roof = lab::measure_roof();
  fmt::print(text, "{}, {} cores, {}, fp32 FMA peak {:.1f} GFLOP/s\n\n", here.cpu, here.cores,
             here.isa, roof.flops_per_second / 1e9);
  std::vector<Results> all;
  Progress progress(problems.size());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    progress.show(i, problems[i].text());
    all.push_back(compare_on(problems[i], implementations, policy(options)));
    for (const lab::Benchmark& b : all.back()) records.write(b, roof);
    progress.clear();
    print_results(text, all.back(), roof);
    std::fflush(text);
  }
  return exit_status(all);
}

}  // namespace strobe::cli
