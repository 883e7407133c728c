#include "measure/sampler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "measure/benchmark.h"
#include "strobe/registry.h"

namespace strobe::lab {
namespace {

TEST(Sampler, PreparesRunsAndChecksEveryTime) {
  std::string log;
  const Trial trial{
      .prepare = [&] { log += 'p'; }, .run = [&] { log += 'r'; }, .check = [&] { log += 'c'; }};
  const Measurement m = sample(trial, {.warmup = 1, .samples = 3});
  EXPECT_EQ(log, "prcprcprcprc");
  EXPECT_EQ(m.samples_ms.size(), 3u);
  EXPECT_GE(m.ms.min, 0);
  EXPECT_LE(m.ms.min, m.ms.median);
  EXPECT_LE(m.ms.median, m.ms.max);
}

TEST(Sampler, StopsAtItsBudgetButNotBeforeTheLeastNumber) {
  const Trial trial{.prepare = [] {}, .run = [] {}, .check = [] {}};
  const SamplingPolicy broke{.warmup = 0, .samples = 100, .min_samples = 4, .budget_s = -1};
  EXPECT_EQ(sample(trial, broke).samples_ms.size(), 4u);
}

TEST(Sampler, ARejectionInTheWarmUpCounts) {
  const Trial trial{
      .prepare = [] {}, .run = [] {}, .check = [] { throw Rejected("nothing done"); }};
  EXPECT_THROW(sample(trial, {.warmup = 1, .samples = 1}), Rejected);
}

/// Computes nothing the first `lazy_after` runs aside.
class Lazy : public Implementation {
 public:
  explicit Lazy(int lazy_after) : diligent_(lazy_after) {}

  std::string_view name() const override { return "lazy"; }
  std::string_view summary() const override { return "writes nothing, in no time"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&) const override { return {}; }

 private:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem};
  }
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    if (diligent_-- <= 0) return;
    const Implementation& oracle = Registry::instance().find("oracle");
    oracle.run(oracle.plan(plan.problem), tensors, nullptr, 0);
  }

  mutable int diligent_;
};

Benchmark run(const Implementation& implementation, const char* problem) {
  Operands operands({.problem = Problem::parse(problem)});
  const Pass pass = operands.problem().pass;
  const SpotCheck check(operands, pass);
  return benchmark(implementation, operands, pass, check, {}, {.warmup = 1, .samples = 2});
}

TEST(Benchmark, RejectsARunThatWritesNothing) {
  for (const int lazy_after : {0, 1, 2}) {
    const Benchmark result = run(Lazy(lazy_after), "b1 sq16 h2 d8 fp32");
    EXPECT_EQ(result.status, Status::failed);
    EXPECT_TRUE(result.measurement.samples_ms.empty());
    EXPECT_EQ(result.reason, "left out [0, 0, 0, 0] unwritten, so its time means nothing");
  }
  EXPECT_EQ(run(Lazy(1), "b1 sq16 h2 d8 fp32 bwd").reason,
            "left dq [0, 0, 0, 0] unwritten, so its time means nothing");
}

TEST(Benchmark, TimesAndChecksEveryPassAndShape) {
  for (const char* problem : {"b1 sq16 h2 d8 fp32", "b2 sq16 sk9 h2 d8 bf16 causal bwd",
                              "lq15,0,9 h2 d8 fp16 bwd", "lq0,0,19 h2 d8 fp16"}) {
    const Benchmark result = run(Registry::instance().find("flash"), problem);
    EXPECT_EQ(result.status, Status::ok) << problem << ": " << result.reason;
    EXPECT_EQ(result.measurement.samples_ms.size(), 2u);
    EXPECT_EQ(result.accuracy.verdict, Verdict::pass) << problem;
    EXPECT_GT(result.flops, 0);
  }
}

TEST(Benchmark, OfNothingIsFine) {
  const Benchmark result = run(Registry::instance().find("flash"), "b2 sq0 sk4 h2 d8 fp32");
  EXPECT_EQ(result.status, Status::ok) << result.reason;
}

}  // namespace
}  // namespace strobe::lab
