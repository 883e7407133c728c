#include "measure/regression.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "strobe/registry.h"

namespace strobe::lab {
namespace {

constexpr double kThreshold = 0.03;

Statistics of(std::initializer_list<double> samples) {
  return summarize(std::vector<double>(samples));
}

TEST(Regression, NeedsTheIntervalsApartByMoreThanTheThreshold) {
  const Statistics then = of({99, 100, 100, 100, 100, 101});
  EXPECT_EQ(judge(then, then, kThreshold), Change::none);
  EXPECT_EQ(judge(then, of({103, 104, 104, 104, 104, 105}), kThreshold), Change::none)
      << "104 is more than 101, but 103 is not more than 101 + 3 %";
  EXPECT_EQ(judge(then, of({105, 106, 106, 106, 106, 107}), kThreshold), Change::slower);
  EXPECT_EQ(judge(then, of({105, 106, 106, 106, 106, 107}), 0.1), Change::none);
  EXPECT_EQ(judge(of({105, 106, 106, 106, 106, 107}), then, kThreshold), Change::faster);
}

TEST(Regression, SaysWhenItCouldNotHaveSeenOne) {
  const Statistics then = of({99, 100, 100, 100, 100, 101});
  EXPECT_EQ(judge(then, of({100, 100, 100}), kThreshold), Change::too_noisy) << "no interval";
  EXPECT_EQ(judge(then, of({80, 90, 100, 100, 110, 120}), kThreshold), Change::too_noisy);
}

TEST(Regression, ABusyMachineIsNotASlowerKernel) {
  std::vector<double> then(60, 100), now(60, 100);
  for (std::size_t i = 0; i < now.size(); ++i) {
    then[i] += static_cast<double>(i % 3);
    if (i % 5 != 0) now[i] = 130 + static_cast<double>(i % 7);  // most samples were delayed
  }
  EXPECT_NE(judge(summarize(then), summarize(now), kThreshold), Change::slower);
}

/// Times as a shared machine gives them: a floor, skewed noise above it, some samples delayed a
/// lot, and a speed that wanders from one measurement to the next.
class NoisyMachine {
 public:
  explicit NoisyMachine(unsigned seed) : generator_(seed) {}

  Statistics measure(double true_ms) {
    const double drift = 1 + 0.005 * normal_(generator_);
    std::vector<double> samples;
    for (int i = 0; i < 60; ++i) {
      double ms = true_ms * drift * (1 + 0.02 * std::abs(normal_(generator_)));
      if (uniform_(generator_) < 0.05) ms *= 1 + uniform_(generator_);
      samples.push_back(ms);
    }
    return summarize(samples);
  }

 private:
  std::mt19937 generator_;
  std::normal_distribution<double> normal_{};
  std::uniform_real_distribution<double> uniform_{};
};

TEST(Regression, NoFalseAlarmAndNoMissInManySimulatedChecks) {
  // Twenty saves and checks of a set of seven, fifty times over.
  NoisyMachine machine(1);
  int alarms = 0, misses = 0;
  for (int check = 0; check < 20 * 7 * 50; ++check) {
    alarms += judge(machine.measure(10), machine.measure(10), kThreshold) == Change::slower;
    misses += judge(machine.measure(10), machine.measure(11), kThreshold) != Change::slower;
  }
  EXPECT_EQ(alarms, 0);
  EXPECT_EQ(misses, 0);
}

/// Flash, and then nothing for a while.
class Spinning final : public Implementation {
 public:
  explicit Spinning(double factor) : factor_(factor) {}

  std::string_view name() const override { return "spinning"; }
  std::string_view summary() const override { return "flash, slowed down"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem& problem) const override { return flash().supports(problem); }

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

TEST(Regression, AKernelThatSpinsIsCaughtLive) {
  // Three times as slow, so that no load on the machine that runs the test can hide or fake it.
  const Problem problem = Problem::parse("b1 sq256 h2 d64 fp32");
  const SamplingPolicy policy{.warmup_s = 0.05, .target = 0.05, .min_samples = 30, .budget_s = 0.1};
  const Spinning slow(3);
  const std::vector<Contest> contests{{&Registry::instance().find("flash"), problem},
                                      {&slow, problem}};
  std::size_t calls = 0;
  const auto results = time_in_rounds(contests, {.threads = 1}, policy,
                                      [&](std::size_t done, std::size_t total, const Contest&) {
                                        EXPECT_EQ(done, calls++);
                                        EXPECT_EQ(total, 6u);
                                      });
  ASSERT_EQ(results.size(), 2u);
  for (const Benchmark& b : results) {
    EXPECT_EQ(b.status, Status::ok) << b.reason;
    EXPECT_GE(b.measurement.samples_ms.size(), 30u);
    EXPECT_EQ(b.accuracy.verdict, Verdict::pass);
  }
  EXPECT_EQ(judge(results[0].measurement.ms, results[1].measurement.ms, kThreshold),
            Change::slower);
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
