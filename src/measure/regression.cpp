#include "measure/regression.h"

#include <algorithm>
#include <array>
#include <optional>

namespace strobe::lab {
namespace {

/// A round's part of the work, so that all of them together keep to the policy: what cannot be
/// divided is done in the first ones, and there may be none for the last.
SamplingPolicy share_of(const SamplingPolicy& whole, int round) {
  SamplingPolicy share = whole;
  share.budget_s /= kRounds;
  share.target = 0;  // quiet moments need their time, however sure the median seems
  share.warmup_s /= kRounds;
  share.max_samples = (whole.max_samples + kRounds - 1 - round) / kRounds;
  share.min_samples = std::min((whole.min_samples + kRounds - 1) / kRounds, share.max_samples);
  return share;
}

std::vector<Benchmark> time_once(std::span<const Implementation* const> contenders,
                                 const Problem& problem, const PlanOptions& options,
                                 const SamplingPolicy& policy, bool checked) {
  Operands operands({.problem = problem});
  const Pass pass = problem.pass;
  const auto check =
      checked ? std::optional<SpotCheck>(std::in_place, operands, pass) : std::nullopt;
  return benchmark(contenders, operands, pass, check ? &*check : nullptr, options, policy);
}

/// What a round found goes to what is known already; a failure counts whenever it happens.
void pool(Benchmark& known, Benchmark more, bool first) {
  if (!first && known.status != Status::ok) return;
  if (first || more.status != Status::ok) {
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
  const Floor before = floor_of(then, count);
  const Floor after = floor_of(now, count);
  Judgement result{.then_ms = before.ms, .now_ms = after.ms};
  if (!before.ci95 || !after.ci95) return result;
  result.slowdown = after.ms / before.ms - 1;
  const auto apart = [threshold](const Floor& fast, const Floor& slow) {
    return slow.ci95->low > fast.ci95->high * (1 + threshold);
  };
  const double low = after.ci95->low / after.ms;
  const double high = before.ci95->high / before.ms;
  if (apart(before, after)) {
    result.change = Change::slower;
  } else if (apart(after, before)) {
    result.change = Change::faster;
  } else if ((1 + visible_slowdown(threshold)) * low > high * (1 + threshold)) {
    result.change = Change::none;
  }
  return result;
}

Judgement judge_pairs(std::span<const double> then, std::span<const double> now, double threshold) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) {
    ratios.push_back(now[i] / then[i]);
  }
  const Statistics ratio = summarize(ratios);
  Judgement result{.then_ms = summarize(then).median, .now_ms = summarize(now).median};
  if (!ratio.ci95) return result;
  result.slowdown = ratio.median - 1;
  if (ratio.ci95->low > 1 + threshold) {
    result.change = Change::slower;
  } else if (ratio.ci95->high < 1 / (1 + threshold)) {
    result.change = Change::faster;
  } else if (ratio.ci95->low / ratio.median * (1 + visible_slowdown(threshold)) > 1 + threshold) {
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
  std::vector<Benchmark> results(contests.size());
  std::size_t done = 0;
  for (int round = 0; round < kRounds; ++round) {
    const SamplingPolicy share = share_of(policy, round);
    if (share.max_samples == 0) break;
    for (std::size_t i = 0; i < contests.size(); ++i) {
      progress(done++, kRounds * contests.size(), contests[i]);
      const std::array alone{contests[i].implementation};
      pool(results[i], time_once(alone, contests[i].problem, options, share, round == 0).front(),
           round == 0);
      results[i].policy = policy;
    }
  }
  return results;
}

Duel time_in_turns(const Implementation& earlier, const Contest& contest,
                   const PlanOptions& options, const SamplingPolicy& policy) {
  const std::array contenders{&earlier, contest.implementation};
  Duel duel;
  for (int round = 0; round < kRounds; ++round) {
    const SamplingPolicy share = share_of(policy, round);
    if (share.max_samples == 0) break;
    auto results = time_once(contenders, contest.problem, options, share, round == 0);
    // Only whole pairs: one may have spent its budget a sample before the other.
    auto& then = results[0].measurement.samples_ms;
    auto& now = results[1].measurement.samples_ms;
    const std::size_t pairs = std::min(then.size(), now.size());
    then.resize(pairs);
    now.resize(pairs);
    pool(duel.then, std::move(results[0]), round == 0);
    pool(duel.now, std::move(results[1]), round == 0);
  }
  return duel;
}

}  // namespace strobe::lab
