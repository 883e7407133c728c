#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "strobe/dtype.h"

namespace strobe::lab {

/// How one tensor compares with the truth, and whether that is good enough.
struct Comparison {
  double max_error = 0, mean_error = 0;        ///< ours against the oracle
  double baseline_max = 0, baseline_mean = 0;  ///< the baseline against the oracle
  double bound = 0, mean_bound = 0;            ///< what ours may have
  std::int64_t worst = -1;                     ///< the worst element; -1 in an empty tensor
  std::string reason{};                        ///< why it fails, in words; empty if it passes

  bool pass() const { return reason.empty(); }
};

/// Three answers to the same question, element by element.
struct Answers {
  std::span<const double> ours, baseline, oracle;
};

/// The size of an answer's error against the oracle, over the elements where both are finite.
struct ErrorLevel {
  double max = 0, mean = 0;
};

ErrorLevel error_level(std::span<const double> values, std::span<const double> oracle);

struct RuleOptions {
  DType dtype = DType::fp32;  ///< the type that the tensor was computed in
  bool gradient = false;
  double room = 0;  ///< on top of an element's bound: rounding that the baseline cannot show
  /// The baseline's error on other draws of the same problem, where one draw says too little.
  ErrorLevel elsewhere{};
  /// Writes the index of an element; by default "[i]".
  std::function<std::string(std::int64_t)> index_text{};
};

/// The rule that decides what correct means. For every element
///
///     |ours - oracle| <= f * max|baseline - oracle| + 2 * max|(oracle + 0.3 - 0.3) - oracle|
///
/// with f = 2 (3 for gradients) and the second difference taken in the dtype; for the mean
///
///     mean|ours - oracle| <= max(1.5 * mean|baseline - oracle|, rounding floor);
///
/// and NaN and the infinities exactly where the oracle, rounded to the dtype, has them.
///
/// The rounding floor is the mean over the elements of half a unit in the last place of the
/// oracle's value: what a result has that is wrong by rounding alone. Without it a tensor of a few
/// elements fails for one rounding that the baseline was lucky to escape (with one key the
/// baseline's output is v itself, error 0, and 1.5 times that leaves nothing). In 16 bits it is a
/// quarter or less of what the sums before the rounding make, so it decides nothing else.
///
/// In a tensor of less than 16 elements a mean is a few draws of the same lottery as the maximum;
/// there the bound of the elements is the bound of the mean as well.
Comparison compare(const Answers& answers, const RuleOptions& options);

/// The rule for the log-sum-exp: within 1e-5 * max(1, |oracle|) + options.room, minus infinity
/// exactly where the oracle has it. It needs no baseline: fp32 holds it in every dtype.
/// The worst element and its error are those that come closest to what they are allowed.
Comparison compare_lse(std::span<const double> ours, std::span<const double> oracle,
                       const RuleOptions& options);

/// Half a unit in the last place of `value` in the dtype: the most that rounding changes it by.
double half_ulp(DType dtype, double value);

}  // namespace strobe::lab
