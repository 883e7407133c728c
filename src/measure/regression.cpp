#include "measure/regression.h"

#include <algorithm>
#include <array>
#include <optional>

namespace strobe::lab {
namespace {

/// Part of the work, so that the rounds together keep to the policy.
SamplingPolicy share_of(const SamplingPolicy& whole) {
  SamplingPolicy share = whole;
  share.budget_s /= kRounds;
  share.target = 0;  // quiet moments need their time, however sure the median seems
  const auto part = [](int count) { return (count + kRounds - 1) / kRounds; };
  share.warmup_s /= kRounds;
  share.min_samples = part(whole.min_samples);
  share.max_samples = part(whole.max_samples);
  return share;
}

Benchmark time_once(const Contest& contest, const PlanOptions& options,
                    const SamplingPolicy& policy, bool checked) {
  Operands operands({.problem = contest.problem});
  const Pass pass = contest.problem.pass;
  const auto check =
      checked ? std::optional<SpotCheck>(std::in_place, operands, pass) : std::nullopt;
  const std::array contenders{contest.implementation};
  return benchmark(contenders, operands, pass, check ? &*check : nullptr, options, policy).front();
}

/// What `more` found goes to what is known already; a failure counts whenever it happens.
void pool(Benchmark& known, Benchmark more) {
  if (known.status != Status::ok) return;
  if (more.status != Status::ok) {
    known = std::move(more);
    return;
  }
  auto& samples = known.measurement.samples_ms;
  const auto& fresh = more.measurement.samples_ms;
  samples.insert(samples.end(), fresh.begin(), fresh.end());
  known.measurement.ms = summarize(samples);
}

}  // namespace

std::string_view name_of(Change change) {
  switch (change) {
    case Change::none:
      return "same";
    case Change::slower:
      return "slower";
    case Change::faster:
      return "faster";
    case Change::too_noisy:
      return "too noisy";
  }
  return "unknown";
}

Floor floor_of(std::span<const double> samples, std::size_t count) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {};
  const double p = count >= 36 ? 0.1 : count >= 13 ? 0.25 : 0.5;
  return {quantile(sorted, p), quantile_interval(sorted, p)};
}

Judgement judge(std::span<const double> then, std::span<const double> now, double threshold) {
  const std::size_t count = std::min(then.size(), now.size());
  Judgement result{.then = floor_of(then, count), .now = floor_of(now, count)};
  if (!result.then.ci95 || !result.now.ci95) return result;
  const auto apart = [threshold](const Floor& fast, const Floor& slow) {
    return slow.ci95->low > fast.ci95->high * (1 + threshold);
  };
  const double low = result.now.ci95->low / result.now.ms;
  const double high = result.then.ci95->high / result.then.ms;
  if (apart(result.then, result.now)) {
    result.change = Change::slower;
  } else if (apart(result.now, result.then)) {
    result.change = Change::faster;
  } else if ((1 + visible_slowdown(threshold)) * low > high * (1 + threshold)) {
    result.change = Change::none;
  }
  return result;
}

double visible_slowdown(double threshold) {
  constexpr double kRoomForNoise = 0.07;
  return (1 + threshold) * (1 + kRoomForNoise) - 1;
}

std::vector<Benchmark> time_in_rounds(std::span<const Contest> contests, const PlanOptions& options,
                                      const SamplingPolicy& policy, const RoundProgress& progress) {
  const SamplingPolicy share = share_of(policy);
  std::vector<Benchmark> results(contests.size());
  std::size_t done = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < contests.size(); ++i) {
      progress(done++, kRounds * contests.size(), contests[i]);
      Benchmark result = time_once(contests[i], options, share, round == 0);
      if (round == 0) {
        results[i] = std::move(result);
        results[i].policy = policy;
      } else {
        pool(results[i], std::move(result));
      }
    }
  }
  return results;
}

}  // namespace strobe::lab
