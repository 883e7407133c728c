#include "measure/regression.h"

#include <array>
#include <cmath>
#include <optional>

namespace strobe::lab {
namespace {

constexpr int kRounds = 3;

/// A third of the work, so that the rounds together keep to the policy.
SamplingPolicy share_of(const SamplingPolicy& whole) {
  SamplingPolicy share = whole;
  share.budget_s /= kRounds;
  share.target *= std::sqrt(static_cast<double>(kRounds));
  const auto third = [](int count) { return (count + kRounds - 1) / kRounds; };
  share.min_samples = third(whole.min_samples);
  share.max_samples = third(whole.max_samples);
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

Change judge(const Statistics& then, const Statistics& now, double threshold) {
  if (!then.ci95 || !now.ci95) return Change::too_noisy;
  const auto apart = [threshold](const Statistics& fast, const Statistics& slow) {
    return slow.ci95->low > fast.ci95->high * (1 + threshold) &&
           slow.p10 > fast.p10 * (1 + threshold);
  };
  if (apart(then, now)) return Change::slower;
  if (apart(now, then)) return Change::faster;
  const double low = now.ci95->low / now.median;
  const double high = then.ci95->high / then.median;
  return (1 + visible_slowdown(threshold)) * low > high * (1 + threshold) ? Change::none
                                                                          : Change::too_noisy;
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
