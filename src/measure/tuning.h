#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "measure/regression.h"

namespace strobe::lab {

/// One way to cut a problem, as far as it came.
struct VariantResult {
  std::string variant{};
  Benchmark benchmark{};  ///< of the last round that it was in
  double ratio = 0;       ///< to the time of the usual one in that round; 0 if it was not timed
};

/// All ways that were tried.
struct Tuning {
  std::vector<VariantResult> variants{};  ///< the usual one first
  std::size_t fastest = 0;                ///< which of them is
  Judgement judgement{};                  ///< of the fastest beside the usual one

  const VariantResult& usual() const { return variants.front(); }
  const VariantResult& winner() const { return variants[fastest]; }

  /// Whether the usual one was timed and is right; otherwise there is nothing to compare with.
  bool comparable() const { return usual().benchmark.status == Status::ok && usual().ratio > 0; }

  /// Whether the fastest is faster than the usual one by more than the noise.
  bool improved() const { return fastest > 0 && judgement.change == Change::faster; }

  /// By how much the usual one takes longer than the fastest, a fraction; 0 if that is noise.
  double loss() const { return improved() ? 1 / (1 + judgement.slowdown) - 1 : 0; }
};

struct TuningPolicy {
  double budget_s = 30;            ///< for all samples together
  int threads = 1;                 ///< to compile on
  Stopwatch* stopwatch = nullptr;  ///< as in SamplingPolicy
};

/// Called before each step of the work.
using TuningProgress =
    std::function<void(std::size_t done, std::size_t total, const std::string& what)>;

/// Steps that tuning so many variants takes.
std::size_t tuning_steps(std::size_t variants);

/// Compiles the variants, of which the first is the usual one, and times them. They run in heats of
/// a few, with the usual one in each, so that whatever the device does meanwhile it does to both,
/// and so that not all of them need memory at once; the fastest of the heats meet once more. What
/// each computes is checked, and what is wrong, or cannot be compiled without spills, drops out
/// with the reason. If the usual one does, that is all there is.
Tuning tune(const Implementation& implementation, const Problem& problem,
            const PlanOptions& options, const std::vector<std::string>& variants,
            const TuningPolicy& policy, const TuningProgress& progress);

}  // namespace strobe::lab
