#include "measure/sampler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "strobe/threads.h"

namespace strobe::lab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Filling the caches again after another trial takes a few milliseconds: longer runs hardly feel
// it.
constexpr double kRefillMs = 100;

// On a GPU the gap before a kernel is some microseconds: shorter runs are recorded, as many as make
// half a millisecond.
constexpr double kShortMs = 0.05;
constexpr double kRecordedMs = 0.5;
constexpr double kMostRecorded = 100;

class PinnedThreads {
 public:
  explicit PinnedThreads(bool pin) { pin_threads(pin); }
  ~PinnedThreads() { pin_threads(before_); }
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;

 private:
  bool before_ = threads_pinned();
};

/// One trial on its way through warm-up and samples.
class Sampling {
 public:
  Sampling(const Trial& trial, const SamplingPolicy& policy, bool alone)
      : trial_(trial), policy_(policy), alone_(alone) {}

  void warm_up();
  void take_sample();

  /// Whether it needs another sample.
  bool unfinished() const { return may_go_on() && !(precise_ && count() >= policy_.min_samples); }

  /// Whether it may take one, if only to keep the others company.
  bool may_go_on() const;

  Measurement result();

 private:
  /// Does something of the trial's; if that fails, the trial is over.
  template <class F>
  void guarded(const F& body);

  double settle();
  bool record_if_short(double ms);
  double timed_run();
  void call();
  void look_for_stragglers(double run_ms);
  void judge_precision();
  void watch_device();
  int count() const { return static_cast<int>(measurement_.samples_ms.size()); }

  const Trial& trial_;
  const SamplingPolicy& policy_;
  bool alone_;
  std::function<void()> recorded_{};
  int calls_ = 1;  ///< in a sample
  bool precise_ = false;
  int next_look_ = 6;
  double last_ms_ = 0;
  double spent_s_ = 0;
  Clock::time_point watched_{};
  Measurement measurement_{};
};

template <class F>
void Sampling::guarded(const F& body) {
  if (measurement_.failure) return;
  try {
    body();
  } catch (...) {
    measurement_.failure = std::current_exception();
  }
}

double Sampling::timed_run() {
  trial_.prepare();
  if (trial_.cache == Cache::cold) trial_.stopwatch->evict_caches();
  const double ms = trial_.stopwatch->time_ms(recorded_ ? recorded_ : [this] { call(); });
  trial_.check();
  return ms / calls_;
}

void Sampling::call() {
  if (!trial_.stopwatch->calls_ahead()) return trial_.run();
  const auto start = Clock::now();
  trial_.run();
  const double ms = seconds_since(start) * 1e3;
  measurement_.call_ms = std::min(ms, measurement_.call_ms.value_or(ms));
}

/// Between runs of a recording the caches cannot be emptied.
bool Sampling::record_if_short(double ms) {
  if (ms >= kShortMs || trial_.cache == Cache::cold || !trial_.recordable) return false;
  const double wanted = std::clamp(std::ceil(kRecordedMs / std::max(ms, 1e-6)), 2.0, kMostRecorded);
  const int rounds = static_cast<int>(std::ceil(wanted / trial_.turns));
  recorded_ = trial_.stopwatch->recorded(trial_.run, rounds * trial_.turns);
  if (recorded_) calls_ = rounds * trial_.turns;
  return static_cast<bool>(recorded_);
}

/// Work that goes on after the run has returned would be missing in every sample.
void Sampling::look_for_stragglers(double run_ms) {
  if (!trial_.check_idle) return;
  trial_.prepare();
  std::this_thread::sleep_for(
      std::chrono::duration<double, std::milli>(std::clamp(run_ms, 2.0, 20.0)));
  trial_.check_idle();
}

/// Ends when three runs in a row have left the running median, which is returned, where it was.
double Sampling::settle() {
  constexpr double kStable = 0.02;
  constexpr int kStableRuns = 3;
  const auto start = Clock::now();
  std::vector<double> sorted;
  double median = 0;
  int stable = 0;
  for (int runs = 0; runs < policy_.max_warmup && stable < kStableRuns; ++runs) {
    if (runs > 0 && seconds_since(start) > policy_.warmup_s) break;
    const double ms = timed_run();
    if (measurement_.warmup_runs++ == 0) look_for_stragglers(ms);
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), ms), ms);
    const double before = std::exchange(median, quantile(sorted, 0.5));
    stable = std::fabs(median - before) <= kStable * median ? stable + 1 : 0;
  }
  return median;
}

void Sampling::warm_up() {
  guarded([this] {
    measurement_.device.before = trial_.stopwatch->state();
    if (record_if_short(settle())) settle();
    measurement_.clock =
        calls_ > 1 ? "graph of " + std::to_string(calls_) : std::string(trial_.stopwatch->name());
  });
}

void Sampling::take_sample() {
  guarded([this] {
    const auto start = Clock::now();
    if (!alone_ && trial_.cache == Cache::warm && last_ms_ < kRefillMs) {
      trial_.prepare();
      trial_.run();
    }
    last_ms_ = timed_run();
    measurement_.samples_ms.push_back(last_ms_);
    watch_device();
    judge_precision();
    spent_s_ += seconds_since(start);
  });
}

/// Looks less and less often: sorting a thousand samples takes longer than a short run.
void Sampling::judge_precision() {
  if (count() < next_look_) return;
  next_look_ = count() + 1 + count() / 8;
  precise_ = summarize(measurement_.samples_ms).relative_uncertainty() <= policy_.target;
}

/// Right after a sample, when the device still is as it was in it; now and then, for asking takes
/// longer than a short run.
void Sampling::watch_device() {
  constexpr double kSecondsBetween = 0.1;
  if (count() > 1 && seconds_since(watched_) < kSecondsBetween) return;
  DeviceWatch& device = measurement_.device;
  device.during = trial_.stopwatch->state();
  watched_ = Clock::now();
  if (!device.during) return;
  for (const std::string& reason : device.during->slowed_by) {
    const auto end = device.slowed_by.end();
    if (std::find(device.slowed_by.begin(), end, reason) == end) device.slowed_by.push_back(reason);
  }
}

bool Sampling::may_go_on() const {
  if (measurement_.failure || count() >= policy_.max_samples) return false;
  return count() < policy_.min_samples || spent_s_ <= policy_.budget_s;
}

Measurement Sampling::result() {
  if (measurement_.failure) measurement_.samples_ms.clear();
  measurement_.ms = summarize(measurement_.samples_ms);
  measurement_.device.after = trial_.stopwatch->state();
  return std::move(measurement_);
}

}  // namespace

std::string_view name_of(Cache cache) {
  constexpr std::array<std::string_view, 3> kNames{"warm", "cold", "rotated"};
  return kNames[static_cast<std::size_t>(cache)];
}

std::optional<Cache> parse_cache(std::string_view name) {
  for (const Cache cache : {Cache::warm, Cache::cold, Cache::rotated}) {
    if (name == name_of(cache)) return cache;
  }
  return std::nullopt;
}

SamplingPolicy SamplingPolicy::exactly(int samples) {
  return {.target = 0, .min_samples = samples, .max_samples = samples};
}

std::vector<Measurement> sample(std::span<const Trial> trials, const SamplingPolicy& policy) {
  const PinnedThreads pinned(policy.pin);
  std::vector<Sampling> samplings;
  for (const Trial& trial : trials) samplings.emplace_back(trial, policy, trials.size() == 1);
  for (Sampling& sampling : samplings) sampling.warm_up();
  const auto any_unfinished = [&] {
    return std::any_of(samplings.begin(), samplings.end(),
                       [](const Sampling& sampling) { return sampling.unfinished(); });
  };
  while (any_unfinished()) {
    for (Sampling& sampling : samplings) {
      if (sampling.may_go_on()) sampling.take_sample();
    }
  }
  std::vector<Measurement> results;
  for (Sampling& sampling : samplings) results.push_back(sampling.result());
  return results;
}

}  // namespace strobe::lab
