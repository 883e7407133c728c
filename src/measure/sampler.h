#pragma once

#include <functional>
#include <vector>

#include "measure/statistics.h"
#include "strobe/error.h"

namespace strobe::lab {

/// A timing that must not be believed: the work was not done.
class Rejected : public Error {
 public:
  using Error::Error;
};

/// One thing to time. Only `run` is inside the clock.
struct Trial {
  std::function<void()> prepare;  ///< before every run: poisons what it must write
  std::function<void()> run;
  std::function<void()> check;  ///< after every run: throws Rejected if it did not
};

struct SamplingPolicy {
  int warmup = 2;         ///< untimed runs before the first sample
  int samples = 20;       ///< at most
  int min_samples = 3;    ///< at least, whatever the budget
  double budget_s = 1e9;  ///< no further sample is begun after this many seconds
};

struct Measurement {
  std::vector<double> samples_ms{};
  Statistics ms{};
};

/// Runs and times by the policy, on the steady clock.
Measurement sample(const Trial& trial, const SamplingPolicy& policy);

}  // namespace strobe::lab
