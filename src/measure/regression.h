#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/benchmark.h"

namespace strobe::lab {

/// What samples say beside earlier ones.
enum class Change : std::uint8_t {
  none,
  slower,
  faster,
  too_noisy  ///< not even a slowdown of `visible_slowdown` would have shown
};

std::string_view name_of(Change change);

/// What a kernel takes when nothing disturbs it: a low quantile of its samples, with a 95 %
/// confidence interval. Other work on a machine adds to times, for a moment or for a minute, and
/// moves a median by a tenth; the quiet moments in between it cannot take away.
struct Floor {
  double ms = 0;
  std::optional<Interval> ci95{};
};

/// The tenth of the samples, or the quarter or the half if there are too few for an interval around
/// that, judged by `count` samples so that two floors are of the same kind.
Floor floor_of(std::span<const double> samples, std::size_t count);

struct Judgement {
  double then_ms = 0, now_ms = 0;
  double slowdown = 0;  ///< a fraction; negative if it became faster
  Change change = Change::too_noisy;
};

/// By the floors of samples taken at different times. A change is one only if the two intervals lie
/// apart by more than `threshold`, a fraction: chance alone moves a floor out of its interval in
/// one of twenty measurements, and would have to do so twice, in opposite directions and by more
/// than the threshold.
Judgement judge(std::span<const double> then, std::span<const double> now, double threshold);

/// By the ratios of samples taken in turns: whatever the machine does, it does to both of a pair. A
/// change is one if the confidence interval of the median ratio lies beyond the threshold.
Judgement judge_pairs(std::span<const double> then, std::span<const double> now, double threshold);

/// The slowdown, a fraction, that a measurement must be able to show: a tenth for a threshold of
/// 3 %.
double visible_slowdown(double threshold);

/// Something to time again and again: one implementation on one problem.
struct Contest {
  const Implementation* implementation = nullptr;
  Problem problem{};
};

/// Called before each contest of each round.
using RoundProgress = std::function<void(std::size_t done, std::size_t total, const Contest&)>;

/// How often `time_in_rounds` goes round, where there are samples for so many rounds.
inline constexpr int kRounds = 8;

/// Times them all in many short rounds, with new operands each time, and pools the samples: what
/// differs between moments and between places in memory is then within a measurement and not
/// between two of them. The policy is for a contest's rounds together; its target is not used, and
/// the budget is spent.
std::vector<Benchmark> time_in_rounds(std::span<const Contest> contests, const PlanOptions& options,
                                      const SamplingPolicy& policy, const RoundProgress& progress);

/// Samples of one contest by two builds, taken in turns.
struct Duel {
  Benchmark then{}, now{};
};

/// Times the contest by the implementation of an earlier build and by its own, in turns, several
/// times with new operands, which both of them share.
Duel time_in_turns(const Implementation& earlier, const Contest& contest,
                   const PlanOptions& options, const SamplingPolicy& policy);

}  // namespace strobe::lab
