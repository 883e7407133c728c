#include "measure/sampler.h"

#include <chrono>

namespace strobe::lab {
namespace {

using Clock = std::chrono::steady_clock;

double timed_run(const Trial& trial) {
  trial.prepare();
  const auto start = Clock::now();
  trial.run();
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
  trial.check();
  return elapsed.count();
}

}  // namespace

Measurement sample(const Trial& trial, const SamplingPolicy& policy) {
  for (int i = 0; i < policy.warmup; ++i) timed_run(trial);
  const auto start = Clock::now();
  const auto spent = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Measurement measurement;
  auto& samples = measurement.samples_ms;
  for (int i = 0; i < policy.samples; ++i) {
    if (i >= policy.min_samples && spent() > policy.budget_s) break;
    samples.push_back(timed_run(trial));
  }
  measurement.ms = summarize(samples);
  return measurement;
}

}  // namespace strobe::lab
