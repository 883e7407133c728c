#include "measure/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace strobe::lab {
namespace {

/// Returns the times it is told, the last one again and again.
class FakeStopwatch final : public Stopwatch {
 public:
  explicit FakeStopwatch(std::vector<double> times) : times_(std::move(times)) {}

  std::string_view name() const override { return "fake"; }

  double time_ms(const std::function<void()>& run) override {
    run();
    return times_[std::min(next_++, times_.size() - 1)];
  }
  std::function<void()> recorded(const std::function<void()>& run, int times) override {
    if (!records) return {};
    return [run, times] {
      for (int i = 0; i < times; ++i) run();
    };
  }
  void evict_caches() override { ++evictions; }
  std::optional<DeviceState> state() override {
    if (reasons.empty()) return std::nullopt;
    return DeviceState{.clock_mhz = ++looks, .slowed_by = reasons};
  }

  bool records = false;
  int evictions = 0;
  int looks = 0;
  std::vector<std::string> reasons{};

 private:
  std::vector<double> times_;
  std::size_t next_ = 0;
};

Trial logging(std::string& log, char name, Stopwatch& stopwatch) {
  return {.prepare = [&log] { log += 'p'; },
          .run = [&log, name] { log += name; },
          .check = [&log] { log += 'c'; },
          .stopwatch = &stopwatch};
}

Measurement sample_one(const Trial& trial, const SamplingPolicy& policy) {
  return sample({&trial, 1}, policy).front();
}

Measurement sample_times(const std::vector<double>& times, const SamplingPolicy& policy) {
  FakeStopwatch stopwatch(times);
  std::string log;
  return sample_one(logging(log, 'r', stopwatch), policy);
}

TEST(Sampler, PreparesRunsAndChecksEveryTime) {
  FakeStopwatch stopwatch({5});
  std::string log;
  SamplingPolicy policy = SamplingPolicy::exactly(3);
  policy.max_warmup = 1;
  const Measurement m = sample_one(logging(log, 'r', stopwatch), policy);
  EXPECT_EQ(log, "prcprcprcprc");
  EXPECT_EQ(m.samples_ms, (std::vector<double>{5, 5, 5}));
  EXPECT_EQ(m.warmup_runs, 1);
  EXPECT_EQ(m.ms.median, 5);
}

TEST(Sampler, TheClockOfTheCpuRunsForward) {
  const Trial nothing{.prepare = [] {}, .run = [] {}, .check = [] {}};
  const Measurement m = sample_one(nothing, SamplingPolicy::exactly(10));
  EXPECT_GE(m.ms.min, 0);
  EXPECT_LE(m.ms.min, m.ms.median);
}

TEST(Sampler, WarmsUpUntilTheMedianIsStable) {
  const SamplingPolicy policy = SamplingPolicy::exactly(1);
  EXPECT_EQ(sample_times({9, 5, 5, 5, 5, 5, 5}, policy).warmup_runs, 6);
  EXPECT_EQ(sample_times({5, 5, 5, 5}, policy).warmup_runs, 4);
  SamplingPolicy capped = policy;
  capped.max_warmup = 2;
  EXPECT_EQ(sample_times({9, 8, 7, 6, 5, 4, 3, 2, 1}, capped).warmup_runs, 2);
  SamplingPolicy hasty = policy;
  hasty.warmup_s = -1;
  EXPECT_EQ(sample_times({9, 8, 7, 6, 5, 4, 3, 2, 1}, hasty).warmup_runs, 1);
}

TEST(Sampler, StopsWhenTheMedianIsKnownWellEnough) {
  SamplingPolicy policy{.target = 0.01, .budget_s = 60};
  policy.max_warmup = 1;
  EXPECT_EQ(sample_times({5}, policy).samples_ms.size(), 6u) << "the first look";
  std::vector<double> noisy;
  for (int i = 0; i < 1000; ++i) noisy.push_back(100 + i * 37 % 20);
  const Measurement m = sample_times(noisy, policy);
  EXPECT_GT(m.samples_ms.size(), 20u);
  EXPECT_LT(m.samples_ms.size(), 1000u);
  EXPECT_LE(m.ms.relative_uncertainty(), 0.01);
}

TEST(Sampler, StopsAtItsBudgetButNotBeforeTheLeastNumber) {
  const SamplingPolicy broke{.target = 0, .min_samples = 4, .budget_s = -1};
  EXPECT_EQ(sample_times({1, 2, 3, 4, 5, 6, 7, 8, 9}, broke).samples_ms.size(), 4u);
}

TEST(Sampler, ExactlyMeansExactlyEvenIfAllAreEqual) {
  EXPECT_EQ(sample_times({5}, SamplingPolicy::exactly(50)).samples_ms.size(), 50u);
}

TEST(Sampler, EvictsTheCachesBeforeEverySampleIfTheyAreToBeCold) {
  FakeStopwatch stopwatch({5});
  std::string log;
  SamplingPolicy policy = SamplingPolicy::exactly(3);
  policy.max_warmup = 1;
  Trial trial = logging(log, 'r', stopwatch);
  trial.cache = Cache::cold;
  sample_one(trial, policy);
  EXPECT_EQ(stopwatch.evictions, 4);
}

TEST(Sampler, SeveralTakeTurnsEachWithItsCachesWarm) {
  FakeStopwatch stopwatch({5});
  std::string log;
  std::vector trials{logging(log, 'a', stopwatch), logging(log, 'b', stopwatch)};
  SamplingPolicy policy = SamplingPolicy::exactly(2);
  policy.max_warmup = 1;
  sample(trials, policy);
  EXPECT_EQ(log,
            "pacpbc"
            "papacpbpbc"
            "papacpbpbc");
  log.clear();
  for (Trial& trial : trials) trial.cache = Cache::cold;
  sample(trials, policy);
  EXPECT_EQ(log,
            "pacpbc"
            "pacpbc"
            "pacpbc")
      << "a run before would be evicted";
}

TEST(Sampler, WhoIsSureGoesOnWhileOthersAreNot) {
  std::vector<double> noisy;
  for (int i = 0; i < 200; ++i) noisy.push_back(100 + i * 37 % 50);
  FakeStopwatch steady({5}), restless(noisy);
  std::string log;
  const std::vector trials{logging(log, 'a', steady), logging(log, 'b', restless)};
  const auto results = sample(trials, {.max_warmup = 1, .max_samples = 40, .budget_s = 60});
  EXPECT_EQ(results[0].samples_ms.size(), results[1].samples_ms.size());
}

TEST(Sampler, ATrialThatThrowsDropsOutAlone) {
  FakeStopwatch stopwatch({5});
  std::string log;
  std::vector trials{logging(log, 'a', stopwatch), logging(log, 'b', stopwatch)};
  int checks = 0;
  trials[0].check = [&checks] {
    if (++checks == 3) throw Rejected("nothing done");
  };
  const auto results = sample(trials, SamplingPolicy::exactly(4));
  EXPECT_TRUE(results[0].failure);
  EXPECT_TRUE(results[0].samples_ms.empty());
  EXPECT_FALSE(results[1].failure);
  EXPECT_EQ(results[1].samples_ms.size(), 4u);
}

TEST(Sampler, WatchesTheDeviceBeforeBetweenAndAfter) {
  FakeStopwatch stopwatch({5});
  stopwatch.reasons = {"power cap"};
  std::string log;
  const Measurement m = sample_one(logging(log, 'r', stopwatch), SamplingPolicy::exactly(1));
  ASSERT_TRUE(m.device.before && m.device.during && m.device.after);
  EXPECT_EQ(m.device.before->clock_mhz, 1);
  EXPECT_EQ(m.device.during->clock_mhz, 2);
  EXPECT_EQ(m.device.after->clock_mhz, 3);
  EXPECT_EQ(m.device.slowed_by, stopwatch.reasons);
}

TEST(Sampler, ADeviceThatTellsNothingIsNotWatched) {
  const Measurement m = sample_times({5}, SamplingPolicy::exactly(3));
  EXPECT_FALSE(m.device.before || m.device.during || m.device.after);
  EXPECT_TRUE(m.device.slowed_by.empty());
}

TEST(Sampler, ShortRunsAreTimedManyAtATimeWhereTheDeviceCanRecordThem) {
  // 20 us a run, then 20 us for all the runs of a recording: half a millisecond of them.
  FakeStopwatch stopwatch({0.02});
  stopwatch.records = true;
  std::string log;
  SamplingPolicy policy = SamplingPolicy::exactly(2);
  policy.max_warmup = 1;
  const Measurement m = sample_one(logging(log, 'r', stopwatch), policy);
  EXPECT_EQ(m.clock, "graph of 25");
  EXPECT_DOUBLE_EQ(m.ms.median, 0.02 / 25);
  EXPECT_EQ(m.warmup_runs, 2) << "one of each kind";
  EXPECT_EQ(std::count(log.begin(), log.end(), 'r'), 1 + 3 * 25);
  EXPECT_EQ(std::count(log.begin(), log.end(), 'c'), 4) << "one look at what a recording left";
}

TEST(Sampler, ARecordingVisitsEveryCopyEquallyOften) {
  FakeStopwatch stopwatch({0.04});
  stopwatch.records = true;
  std::string log;
  Trial trial = logging(log, 'r', stopwatch);
  trial.cache = Cache::rotated;
  trial.turns = 9;
  EXPECT_EQ(sample_one(trial, SamplingPolicy::exactly(1)).clock, "graph of 18");
}

TEST(Sampler, LongRunsColdCachesAndWhatCannotBeRecordedAreTimedOneByOne) {
  std::string log;
  FakeStopwatch slow({0.06}), quick({0.01});
  slow.records = true;
  EXPECT_EQ(sample_one(logging(log, 'r', slow), SamplingPolicy::exactly(1)).clock, "fake");
  const Measurement single = sample_one(logging(log, 'r', quick), SamplingPolicy::exactly(1));
  EXPECT_EQ(single.clock, "fake");
  EXPECT_EQ(single.ms.median, 0.01);
  quick.records = true;
  Trial cold = logging(log, 'r', quick);
  cold.cache = Cache::cold;
  EXPECT_EQ(sample_one(cold, SamplingPolicy::exactly(1)).clock, "fake");
  Trial unrecordable = logging(log, 'r', quick);
  unrecordable.recordable = false;
  EXPECT_EQ(sample_one(unrecordable, SamplingPolicy::exactly(1)).clock, "fake");
}

TEST(Sampler, LooksOnceWhetherAnythingWritesWhileNothingRuns) {
  FakeStopwatch stopwatch({1});
  std::string log;
  Trial trial = logging(log, 'r', stopwatch);
  trial.check_idle = [&log] { log += 'i'; };
  SamplingPolicy policy = SamplingPolicy::exactly(1);
  policy.max_warmup = 2;
  sample_one(trial, policy);
  EXPECT_EQ(log, "prcpiprcprc");
}

}  // namespace
}  // namespace strobe::lab
