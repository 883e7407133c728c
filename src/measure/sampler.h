#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/statistics.h"
#include "measure/stopwatch.h"
#include "strobe/error.h"

namespace strobe::lab {

/// A timing that must not be believed: the work was not done, or not done in time.
class Rejected : public Error {
 public:
  using Error::Error;
};

/// Where a sample finds its operands: in the caches, as far as an earlier run left them there; in
/// memory, because the caches were emptied; or in memory, because the runs take turns on several
/// copies that together are too large for the caches.
enum class Cache : std::uint8_t { warm, cold, rotated };

std::string_view name_of(Cache cache);

/// By its name; nothing for another.
std::optional<Cache> parse_cache(std::string_view name);

/// One thing to time. Only `run` is inside the clock.
struct Trial {
  std::function<void()> prepare;  ///< before every run: poisons what it must write
  std::function<void()> run;
  std::function<void()> check;         ///< after every run: throws Rejected if it did not write it
  std::function<void()> check_idle{};  ///< while nothing runs: throws Rejected if something writes
  Stopwatch* stopwatch = &cpu_stopwatch();
  Cache cache = Cache::warm;
  int turns = 1;  ///< copies of the operands that the runs take turns on
  bool recordable = true;
};

struct SamplingPolicy {
  Cache cache = Cache::warm;  ///< of the CPU
  Cache gpu_cache = Cache::rotated;
  int max_warmup = 20;      ///< untimed runs, fewer once their median is stable
  double warmup_s = 0.5;    ///< no further warm-up run is begun after this many seconds
  double target = 0.01;     ///< half the confidence interval of the median, in medians, is enough
  int min_samples = 3;      ///< at least, whatever the budget
  int max_samples = 10000;  ///< at most, whatever the target
  double budget_s = 2;      ///< no further sample is begun after this many seconds
  bool pin = true;          ///< each thread to a core while it is timed
  Stopwatch* stopwatch = nullptr;  ///< in place of the device's own, for tests

  Cache cache_on(Device::Kind kind) const { return kind == Device::Kind::cpu ? cache : gpu_cache; }

  /// Exactly so many samples, however uncertain.
  static SamplingPolicy exactly(int samples);
};

/// A device before, between and after the samples; nothing where it does not tell.
struct DeviceWatch {
  std::optional<DeviceState> before{}, during{}, after{};
  /// What kept its clocks down at any moment that was looked at between the samples.
  std::vector<std::string> slowed_by{};
};

struct Measurement {
  std::vector<double> samples_ms{};
  Statistics ms{};
  int warmup_runs = 0;
  std::string clock{};  ///< what the times are of: "steady", "events", "graph of 40"
  /// The least time that a call took of the host, where that is not the time of the work.
  std::optional<double> call_ms{};
  DeviceWatch device{};
  std::exception_ptr failure{};  ///< what ended it early; there are no samples then
};

/// Times the trials by the policy. A run that is too short for its device is timed many at a time,
/// and a sample is the time of one of them. Several trials take turns, so that a machine that
/// gets slower does so for all of them; then, for warm caches, a short one runs once untimed before
/// each of its samples. A trial that throws drops out with its failure.
std::vector<Measurement> sample(std::span<const Trial> trials, const SamplingPolicy& policy);

}  // namespace strobe::lab
