#include "verify/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr double kLseTolerance = 1e-5;
constexpr double kMeanFactor = 1.5;
constexpr std::size_t kFewElements = 16;

struct Precision {
  int mantissa_bits;
  int min_exponent;
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return {23, -126};
    case DType::fp16:
      return {10, -14};
    case DType::bf16:
      return {7, -126};
    case DType::fp8_e4m3:
      return {3, -6};
    default:
      throw InvalidArgument("dtype", "has no rounding; the rule is for floating types");
  }
}

/// Adding and taking away 0.3 loses the bits that a sum of that size cannot hold: a measure of
/// what the dtype does to values around one, also where the values are tiny.
double absorption(DType dtype, double oracle) {
  const double value = round_to(dtype, oracle);
  return std::fabs(round_to(dtype, round_to(dtype, value + 0.3) - 0.3) - value);
}

bool same_kind(double ours, double oracle) {
  if (std::isnan(oracle)) return std::isnan(ours);
  if (std::isinf(oracle)) return ours == oracle;
  return std::isfinite(ours);
}

std::string text_of(const RuleOptions& options, std::int64_t element) {
  return options.index_text ? options.index_text(element) : fmt::format("[{}]", element);
}

/// The running maximum and mean of an error over the elements where both sides are finite.
class ErrorSum {
 public:
  void add(double value, double truth, std::int64_t element) {
    if (!std::isfinite(value) || !std::isfinite(truth)) return;
    const double error = std::fabs(value - truth);
    sum_ += error;
    ++count_;
    if (error > max_ || worst_ < 0) max_ = error, worst_ = element;
  }

  double max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  std::int64_t worst() const { return worst_; }

 private:
  double sum_ = 0, max_ = 0;
  std::int64_t count_ = 0, worst_ = -1;
};

/// The first element that is finite where the truth is not, or the other way round.
void check_kinds(std::span<const double> ours, std::span<const double> oracle, DType dtype,
                 const RuleOptions& options, Comparison& result) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double truth = round_to(dtype, oracle[i]);
    if (same_kind(ours[i], truth)) continue;
    result.worst = static_cast<std::int64_t>(i);
    result.max_error = std::numeric_limits<double>::infinity();
    result.reason = fmt::format("{} is {} where the oracle has {}", text_of(options, result.worst),
                                ours[i], truth);
    return;
  }
}

void require_same_size(std::size_t ours, std::size_t other, const char* who) {
  if (ours == other) return;
  throw InvalidArgument(
      who, fmt::format("has {} elements where the implementation has {}", other, ours));
}

std::string out_of_bound(const Comparison& result, double ours, double oracle,
                         const RuleOptions& options) {
  return fmt::format("{} is {:.9g}, the oracle says {:.9g}: off by {:.3g}, allowed {:.3g}",
                     text_of(options, result.worst), ours, oracle, result.max_error, result.bound);
}

}  // namespace

ErrorLevel error_level(std::span<const double> values, std::span<const double> oracle) {
  require_same_size(values.size(), oracle.size(), "oracle");
  ErrorSum error;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error.add(values[i], oracle[i], static_cast<std::int64_t>(i));
  }
  return {error.max(), error.mean()};
}

double half_ulp(DType dtype, double value) {
  const Precision precision = precision_of(dtype);
  const int exponent = value == 0 ? precision.min_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, precision.min_exponent) - precision.mantissa_bits - 1);
}

Comparison compare(const Answers& answers, const RuleOptions& options) {
  const auto& [ours, baseline, oracle] = answers;
  require_same_size(ours.size(), oracle.size(), "oracle");
  require_same_size(ours.size(), baseline.size(), "baseline");

  ErrorSum error, rounding;
  double slack = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto element = static_cast<std::int64_t>(i);
    error.add(ours[i], oracle[i], element);
    if (!std::isfinite(round_to(options.dtype, oracle[i]))) continue;
    rounding.add(half_ulp(options.dtype, oracle[i]), 0, element);
    slack = std::max(slack, absorption(options.dtype, oracle[i]));
  }

  const ErrorLevel here = error_level(baseline, oracle);
  Comparison result{.max_error = error.max(),
                    .mean_error = error.mean(),
                    .baseline_max = std::max(here.max, options.elsewhere.max),
                    .baseline_mean = std::max(here.mean, options.elsewhere.mean),
                    .worst = error.worst()};
  result.bound = (options.gradient ? 3 : 2) * result.baseline_max + 2 * slack + options.room;
  result.mean_bound = std::max(kMeanFactor * result.baseline_mean, rounding.mean());
  if (ours.size() < kFewElements) result.mean_bound = std::max(result.mean_bound, result.bound);
  if (result.max_error > result.bound) {
    const auto worst = static_cast<std::size_t>(result.worst);
    result.reason = out_of_bound(result, ours[worst], oracle[worst], options);
  } else if (result.mean_error > result.mean_bound) {
    result.reason =
        fmt::format("the mean error is {:.3g}, allowed {:.3g} (the baseline has {:.3g})",
                    result.mean_error, result.mean_bound, result.baseline_mean);
  }
  check_kinds(ours, oracle, options.dtype, options, result);
  return result;
}

Comparison compare_lse(std::span<const double> ours, std::span<const double> oracle,
                       const RuleOptions& options) {
  require_same_size(ours.size(), oracle.size(), "oracle");
  const auto allowed = [&](std::size_t i) {
    return kLseTolerance * std::max(1.0, std::fabs(oracle[i])) + options.room;
  };
  ErrorSum share;  // of what is allowed
  for (std::size_t i = 0; i < ours.size(); ++i) {
    share.add(ours[i] / allowed(i), oracle[i] / allowed(i), static_cast<std::int64_t>(i));
  }
  Comparison result{.mean_error = error_level(ours, oracle).mean, .worst = share.worst()};
  if (result.worst >= 0) {
    const auto worst = static_cast<std::size_t>(result.worst);
    result.max_error = std::fabs(ours[worst] - oracle[worst]);
    result.bound = result.mean_bound = allowed(worst);
    if (share.max() > 1) result.reason = out_of_bound(result, ours[worst], oracle[worst], options);
  }
  check_kinds(ours, oracle, DType::fp32, options, result);
  return result;
}

}  // namespace strobe::lab
