#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common.h"
#include "cli/sweep.h"
#include "measure/benchmark.h"
#include "report/record.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cli {
namespace {

using nlohmann::json;

/// Results come out of this as soon as they are there.
using Take = std::function<void(const lab::Benchmark&)>;

/// Times implementations on one pass of one problem: all that a sweep knows of measuring.
void measure(std::span<const lab::Point> points, lab::Operands& operands,
             const SweepOptions& options, const Take& take) {
  std::vector<const Implementation*> implementations;
  for (const lab::Point& point : points) {
    implementations.push_back(&Registry::instance().find(point.implementation));
  }
  const Pass pass = points.front().problem.pass;
  const lab::SpotCheck check(operands, pass);
  const auto results = lab::benchmark(implementations, operands, pass, &check, options.run.plan(),
                                      policy_of(options));
  for (const lab::Benchmark& result : results) take(result);
}

bool same_but_pass(const Problem& a, Problem b) {
  b.pass = a.pass;
  return a == b;
}

/// How many of the points share the operands of the first.
std::size_t group_size(std::span<const lab::Point> points) {
  const auto end = std::find_if_not(points.begin(), points.end(), [&](const lab::Point& point) {
    return same_but_pass(point.problem, points.front().problem);
  });
  return static_cast<std::size_t>(end - points.begin());
}

/// The points of one problem: passes one after the other on the same operands.
void measure_group(std::span<const lab::Point> points, const SweepOptions& options,
                   const Take& take) {
  Problem problem = points.front().problem;
  for (const lab::Point& point : points) {
    if (point.problem.pass == Pass::backward) problem.pass = Pass::backward;
  }
  std::optional<lab::Operands> operands;
  try {
    operands.emplace(lab::Case{.problem = problem});
  } catch (const OutOfMemory& error) {  // there was room when the sweep began
    for (const lab::Point& point : points) {
      take(lab::without_operands(Registry::instance().find(point.implementation), point.problem,
                                 options.run.plan(), error));
    }
    return;
  }
  while (!points.empty()) {
    const auto end = std::find_if(points.begin(), points.end(), [&](const lab::Point& point) {
      return point.problem.pass != points.front().problem.pass;
    });
    const auto count = static_cast<std::size_t>(end - points.begin());
    measure(points.first(count), *operands, options, take);
    points = points.subspan(count);
  }
}

std::string outcome_text(const json& record) {
  if (record.contains("ms")) return fmt::format("{:.3f} ms", record["ms"]["p50"].get<double>());
  return fmt::format("{}: {}", record["status"].get<std::string>(), record.value("reason", ""));
}

}  // namespace

lab::SamplingPolicy policy_of(const SweepOptions& options) {
  lab::SamplingPolicy policy = options.sampling.policy();
  policy.warmup_s = std::min(policy.warmup_s, policy.budget_s / 4);
  return policy;
}

lab::Pace pace_of(const SweepOptions& options) {
  const lab::Peaks peaks = lab::machine_peaks(options.run.threads);
  const lab::SamplingPolicy policy = policy_of(options);
  return {.flops_per_second = peaks.flops_per_second.at(DType::fp32),
          .budget_s = policy.warmup_s + policy.budget_s,
          .least_runs = policy.min_samples + 2,  // one to warm up, one before to see what it takes
          .most_runs = policy.max_warmup + policy.max_samples};
}

void measure_all(std::span<const lab::Point> points, const SweepOptions& options,
                 const Sweep& sweep, const lab::Peaks& peaks,
                 const std::function<void(const json&)>& keep) {
  std::vector<double> seconds;
  const lab::Pace pace = pace_of(options);
  for (const lab::Point& point : points) seconds.push_back(estimated_seconds(point, pace));
  Progress progress(seconds);
  std::size_t done = 0;
  while (done < points.size()) {
    const auto group = points.subspan(done, group_size(points.subspan(done)));
    progress.show(done, group.front().name());
    measure_group(group, options, [&](const lab::Benchmark& result) {
      json record = lab::record_of(result, peaks);
      record["sweep"] = {{"preset", options.preset}, {"shrink", sweep.shrink}};
      keep(record);
      progress.clear();
      warn_of_slowdown(result);
      warn_of_low_peak(result, peaks);
      if (!progress.visible()) {
        fmt::print(stderr, "[{}/{}] {}: {}\n", done + 1, points.size(), points[done].name(),
                   outcome_text(record));
      }
      if (++done < points.size()) progress.show(done, points[done].name());
    });
  }
}

}  // namespace strobe::cli
