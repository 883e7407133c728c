#include "measure/regression.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "strobe/registry.h"

namespace strobe::lab {
namespace {

constexpr double kThreshold = 0.03;

using Samples = std::vector<double>;

Change change(const Samples& then, const Samples& now, double threshold = kThreshold) {
  return judge(then, now, threshold).change;
}

TEST(Regression, NeedsTheIntervalsApartByMoreThanTheThreshold) {
  const Samples then{99, 100, 100, 100, 100, 101};
  const Samples bit_slower{103, 104, 104, 104, 104, 105};
  const Samples slower{105, 106, 106, 106, 106, 107};
  EXPECT_EQ(change(then, then), Change::none);
  EXPECT_EQ(change(then, bit_slower), Change::none)
      << "104 is more than 101, but 103 is not more than 101 + 3 %";
  EXPECT_EQ(change(then, slower), Change::slower);
  EXPECT_EQ(change(then, slower, 0.1), Change::none);
  EXPECT_EQ(change(slower, then), Change::faster);
  EXPECT_NEAR(judge(then, slower, kThreshold).slowdown, 0.06, 1e-12);
}

TEST(Regression, SaysWhenItCouldNotHaveSeenOne) {
  const Samples then{99, 100, 100, 100, 100, 101};
  EXPECT_EQ(change(then, {100, 100, 100}), Change::too_noisy) << "no interval";
  EXPECT_EQ(change(then, {80, 90, 100, 100, 110, 120}), Change::too_noisy);
  EXPECT_EQ(change({}, {}), Change::too_noisy);
}

TEST(Regression, FloorsAreOfTheSameKindOnBothSides) {
  Samples few, many;
  for (int i = 1; i <= 100; ++i) many.push_back(i);
  for (int i = 1; i <= 20; ++i) few.push_back(i);
  EXPECT_NEAR(floor_of(many, 100).ms, 10.9, 1e-9);
  EXPECT_NEAR(floor_of(many, 20).ms, 25.75, 1e-9);
  EXPECT_NEAR(floor_of(many, 6).ms, 50.5, 1e-9);
  EXPECT_EQ(judge(few, many, kThreshold).now_ms, floor_of(many, 20).ms);
}

TEST(Regression, ABusyMachineIsNotASlowerKernel) {
  Samples then(60, 100), now(60, 100);
  for (std::size_t i = 0; i < now.size(); ++i) {
    then[i] += static_cast<double>(i % 3);
    if (i % 3 != 0) now[i] = 130 + static_cast<double>(i % 7);  // most samples were delayed
  }
  EXPECT_EQ(change(then, now), Change::none);
}

/// Times as a shared machine gives them: a floor, skewed noise above it, some samples delayed a
/// lot, a round in seven a fifth slower, and a speed that wanders from one measurement to the next.
class NoisyMachine {
 public:
  explicit NoisyMachine(unsigned seed) : generator_(seed) {}

  Samples measure(double true_ms) {
    const double drift = 1 + 0.005 * normal_(generator_);
    Samples samples;
    for (int round = 0; round < kRounds; ++round) {
      const double busy = uniform_(generator_) < 0.15 ? 1.2 : 1;
      for (int i = 0; i < 12; ++i) {
        double ms = true_ms * drift * busy * (1 + 0.02 * std::abs(normal_(generator_)));
        if (uniform_(generator_) < 0.05) ms *= 1 + uniform_(generator_);
        samples.push_back(ms);
      }
    }
    return samples;
  }

 private:
  std::mt19937 generator_;
  std::normal_distribution<double> normal_{};
  std::uniform_real_distribution<double> uniform_{};
};

TEST(Regression, NoFalseAlarmAndNoMissInManySimulatedChecks) {
  // Twenty saves and checks of a set of seven, ten times over.
  NoisyMachine machine(1);
  int alarms = 0, misses = 0;
  for (int check = 0; check < 20 * 7 * 10; ++check) {
    const Samples then = machine.measure(10);
    alarms += change(then, machine.measure(10)) == Change::slower;
    misses += change(then, machine.measure(11)) != Change::slower;
  }
  EXPECT_EQ(alarms, 0);
  EXPECT_EQ(misses, 0);
}

TEST(Regression, PairsSeeThroughAMachineThatChangesItsSpeed) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (const double factor : {1.0, 1.1, 0.9}) {
    Samples then, now;
    double speed = 1;
    for (int i = 0; i < 100; ++i) {
      if (i % 10 == 0) speed = 1 + 0.4 * uniform(generator);  // what both of a pair meet
      then.push_back(10 * speed * (1 + 0.02 * normal(generator)));
      now.push_back(10 * factor * speed * (1 + 0.02 * normal(generator)));
    }
    const Judgement judgement = judge_pairs(then, now, kThreshold);
    EXPECT_NEAR(judgement.slowdown, factor - 1, 0.02);
    EXPECT_EQ(judgement.change, factor > 1   ? Change::slower
                                : factor < 1 ? Change::faster
                                             : Change::none);
  }
  EXPECT_EQ(judge_pairs({}, {}, kThreshold).change, Change::too_noisy);
  const Samples wild{1, 2, 1, 3, 1, 2, 1, 3}, calm(8, 1.5);
  EXPECT_EQ(judge_pairs(calm, wild, kThreshold).change, Change::too_noisy);
}

/// Flash, and then nothing for a while.
class Spinning final : public Implementation {
 public:
  explicit Spinning(double factor) : factor_(factor) {}

  std::string_view name() const override { return "spinning"; }
  std::string_view summary() const override { return "flash, slowed down"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    return flash().supports(problem);
  }

 private:
  static const Implementation& flash() { return Registry::instance().find("flash"); }

  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    return flash().plan(problem, options);
  }
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream) const override {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    flash().run(plan, tensors, space, plan.workspace_bytes);
    const auto end = start + (Clock::now() - start) * factor_;
    while (Clock::now() < end) {
    }
  }

  double factor_;
};

/// Few runs, for machines on which every run takes long.
SamplingPolicy quick() {
  SamplingPolicy policy = SamplingPolicy::exactly(32);
  policy.max_warmup = 1;
  return policy;
}

TEST(Regression, AKernelThatSpinsIsCaughtLive) {
  // Eight times as slow, so that no load on the machine that runs the test can hide or fake it.
  const Problem problem = Problem::parse("b1 sq64 h1 d16 fp32");
  const SamplingPolicy policy = quick();
  const Spinning slow(8);
  const std::vector<Contest> contests{{&Registry::instance().find("flash"), problem},
                                      {&slow, problem}};
  std::size_t calls = 0;
  const auto results = time_in_rounds(contests, {.threads = 1}, policy,
                                      [&](std::size_t done, std::size_t total, const Contest&) {
                                        EXPECT_EQ(done, calls++);
                                        EXPECT_EQ(total, 2u * kRounds);
                                      });
  ASSERT_EQ(results.size(), 2u);
  for (const Benchmark& b : results) {
    EXPECT_EQ(b.status, Status::ok) << b.reason;
    EXPECT_EQ(b.measurement.samples_ms.size(), 32u);
    EXPECT_EQ(b.accuracy.verdict, Verdict::pass);
  }
  EXPECT_EQ(change(results[0].measurement.samples_ms, results[1].measurement.samples_ms),
            Change::slower);
}

TEST(Regression, RoundsTakeTheSamplesThatWereAskedForTogether) {
  const Implementation& flash = Registry::instance().find("flash");
  const std::vector<Contest> contests{{&flash, Problem::parse("b1 sq64 h1 d16 fp32")}};
  for (const int count : {1, 3, 8, 10}) {
    const SamplingPolicy policy = SamplingPolicy::exactly(count);
    const auto results = time_in_rounds(contests, {.threads = 1}, policy,
                                        [](std::size_t, std::size_t, const Contest&) {});
    EXPECT_EQ(results.front().measurement.samples_ms.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(results.front().accuracy.verdict, Verdict::pass) << count;
    const Duel duel = time_in_turns(flash, contests.front(), {.threads = 1}, policy);
    EXPECT_EQ(duel.now.measurement.samples_ms.size(), static_cast<std::size_t>(count));
  }
}

TEST(Regression, InTurnsSamplesComeInPairs) {
  const Spinning slow(8);
  const Implementation& flash = Registry::instance().find("flash");
  const SamplingPolicy policy = quick();
  const Duel duel = time_in_turns(flash, {&slow, Problem::parse("b1 sq64 h1 d16 fp32 bwd")},
                                  {.threads = 1}, policy);
  EXPECT_EQ(duel.now.status, Status::ok) << duel.now.reason;
  const auto& then = duel.then.measurement.samples_ms;
  const auto& now = duel.now.measurement.samples_ms;
  EXPECT_EQ(then.size(), now.size());
  EXPECT_EQ(now.size(), 32u);
  EXPECT_EQ(judge_pairs(then, now, kThreshold).change, Change::slower);
}

TEST(Regression, AFailureInAnyRoundIsTheResult) {
  const std::vector<Contest> contests{
      {&Registry::instance().find("flash"), Problem::parse("s8 int8")}};
  const auto results =
      time_in_rounds(contests, {}, {}, [](std::size_t, std::size_t, const Contest&) {});
  EXPECT_EQ(results.front().status, Status::unsupported);
}

}  // namespace
}  // namespace strobe::lab
