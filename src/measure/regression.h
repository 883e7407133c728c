#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/benchmark.h"

namespace strobe::lab {

/// What a median and its confidence interval say beside earlier ones.
enum class Change : std::uint8_t {
  none,
  slower,
  faster,
  too_noisy  ///< not even a slowdown of `visible_slowdown` would have shown
};

std::string_view name_of(Change change);

/// A change is one only if the two intervals lie apart by more than `threshold`, a fraction: chance
/// alone moves a median out of its interval in one of twenty measurements, and would have to do so
/// twice, in opposite directions and by more than the threshold. And the fastest tenth of the
/// samples must have changed as much: other work on the machine delays some samples, a slower
/// kernel all of them.
Change judge(const Statistics& then, const Statistics& now, double threshold);

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

/// Times them all, several times round with new operands each time, and pools the samples: what
/// differs between moments and between places in memory is then within a measurement and not
/// between two of them. The policy is for a contest's rounds together.
std::vector<Benchmark> time_in_rounds(std::span<const Contest> contests, const PlanOptions& options,
                                      const SamplingPolicy& policy, const RoundProgress& progress);

}  // namespace strobe::lab
