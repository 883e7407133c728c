#include "measure/benchmark.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "measure/resident.h"
#include "strobe/registry.h"

namespace strobe::lab {
namespace {

/// Computes by the oracle, until it is told to do otherwise.
class Fake : public Implementation {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem};
  }
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    const Implementation& oracle = Registry::instance().find("oracle");
    oracle.run(oracle.plan(plan.problem), tensors, nullptr, 0);
  }
};

/// Computes nothing once it has run a few times.
class Lazy final : public Fake {
 public:
  explicit Lazy(int lazy_after) : diligent_(lazy_after) {}

 private:
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream s) const override {
    if (diligent_-- > 0) Fake::execute(plan, tensors, space, s);
  }
  mutable int diligent_;
};

/// Returns with everything written, and goes on writing until it runs again: for as long as it is
/// looked for, which is as long as it ran, so that a busy machine finds it too.
class Straggler final : public Fake {
 public:
  ~Straggler() override { stop(); }

 private:
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream s) const override {
    stop();
    Fake::execute(plan, tensors, space, s);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    running_ = true;
    thread_ = std::thread([this, last = static_cast<float*>(tensors.out.data)] {
      while (running_) {
        *last = 1;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  }
  void stop() const {
    running_ = false;
    if (thread_.joinable()) thread_.join();
  }
  mutable std::atomic<bool> running_{false};
  mutable std::thread thread_;
};

/// Takes memory that its plan does not speak of.
class Greedy final : public Fake {
 public:
  static constexpr std::size_t kHidden = 64 << 20;

 private:
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream s) const override {
    std::vector<char> hidden(kHidden, 1);
    Fake::execute(plan, tensors, space, s);
    __asm__ volatile("" : : "r"(hidden.data()) : "memory");
  }
};

/// As a library that returns memory of its own, and no LSE.
class Returning : public Fake {
 public:
  Habits habits() const override {
    return {.guest = true, .recordable = false, .gives_lse = false};
  }
  void deliver(const Plan&, const Tensors& tensors, Stream) const override {
    if (result_.empty()) return;
    std::copy(result_.begin(), result_.end(), static_cast<float*>(tensors.out.data));
    result_.clear();
    ++deliveries;
  }
  mutable int runs = 0, deliveries = 0;

 private:
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream s) const override {
    result_.resize(static_cast<std::size_t>(tensors.out.elements()));
    Tensors elsewhere = tensors;
    elsewhere.out.data = result_.data();
    Fake::execute(plan, elsewhere, space, s);
    ++runs;
  }
  mutable std::vector<float> result_{};
};

std::vector<Benchmark> run(std::vector<const Implementation*> implementations, Operands& operands) {
  const Pass pass = operands.problem().pass;
  const SpotCheck check(operands, pass);
  SamplingPolicy policy = SamplingPolicy::exactly(2);
  policy.max_warmup = 1;
  return benchmark(implementations, operands, pass, &check, {}, policy);
}

std::vector<Benchmark> run(std::vector<const Implementation*> implementations,
                           const char* problem) {
  Operands operands({.problem = Problem::parse(problem)});
  return run(std::move(implementations), operands);
}

Benchmark run(const Implementation& implementation, const char* problem) {
  return run(std::vector{&implementation}, problem).front();
}

const Implementation& flash() {
  return Registry::instance().find("flash");
}

TEST(Benchmark, RejectsARunThatWritesNothing) {
  for (const int lazy_after : {0, 1, 2, 3}) {
    const Benchmark result = run(Lazy(lazy_after), "b1 sq16 h2 d8 fp32");
    EXPECT_EQ(result.status, Status::failed);
    EXPECT_FALSE(result.timed());
    EXPECT_EQ(result.reason,
              "had not written out [0, 0, 0, 0] when it returned, so its time means nothing");
  }
  EXPECT_NE(run(Lazy(1), "b1 sq16 h2 d8 fp32 bwd").reason.find("dq [0, 0, 0, 0]"),
            std::string::npos);
}

TEST(Benchmark, RejectsARunThatDoesNotWaitForItsWork) {
  Operands operands({.problem = Problem::parse("b1 sq16 h2 d8 fp32")});
  const Straggler straggler;  // gone before what it writes to
  const Benchmark result = run({&straggler}, operands).front();
  EXPECT_EQ(result.status, Status::failed);
  EXPECT_NE(result.reason.find("still wrote out after it had returned"), std::string::npos)
      << result.reason;
}

TEST(Benchmark, OneThatFailsLeavesTheOthersAlone) {
  const Lazy lazy(2);
  const Lazy wrong_from_the_start(0);
  const auto results = run({&lazy, &flash(), &wrong_from_the_start}, "b1 sq40 h2 d8 fp32");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status, Status::failed);
  EXPECT_EQ(results[1].status, Status::ok) << results[1].reason;
  EXPECT_EQ(results[1].accuracy.verdict, Verdict::pass);
  EXPECT_EQ(results[2].status, Status::failed);
}

TEST(Benchmark, WhatIsReturnedIsDeliveredBeforeItIsLookedAt) {
  const Returning returning;
  const auto results = run({&returning, &flash()}, "b1 sq40 h2 d8 fp32");
  EXPECT_EQ(results[0].status, Status::ok) << results[0].reason;
  EXPECT_EQ(results[0].accuracy.verdict, Verdict::pass);
  EXPECT_EQ(results[0].memory.workspace, 0);
  EXPECT_GT(returning.deliveries, 2);  // of every sample, and of what was judged
}

TEST(Benchmark, WhatIsNotDeliveredIsNotWritten) {
  class Keeping final : public Returning {
    void deliver(const Plan&, const Tensors&, Stream) const override {}
  };
  EXPECT_EQ(run(Keeping(), "b1 sq16 h2 d8 fp32").reason,
            "had not written out [0, 0, 0, 0] when it returned, so its time means nothing");
}

TEST(Benchmark, AnErrorOfTheDeviceIsARow) {
  class Broken final : public Fake {
    void execute(const Plan&, const Tensors&, void*, Stream) const override {
      throw Error("the device is lost");
    }
  };
  const Broken broken;
  const auto results = run({&broken, &flash()}, "b1 sq16 h2 d8 fp32");
  EXPECT_EQ(results[0].status, Status::failed);
  EXPECT_EQ(results[0].reason, "the device is lost");
  EXPECT_EQ(results[1].status, Status::ok) << results[1].reason;
}

TEST(Benchmark, WhatIsNotSupportedIsARow) {
  const auto results = run({&flash(), &Registry::instance().find("standard")}, "s8 d8 int8");
  for (const Benchmark& result : results) {
    EXPECT_EQ(result.status, Status::unsupported);
    EXPECT_NE(result.reason.find("int8"), std::string::npos) << result.reason;
  }
}

/// Computes something else.
class Wrong final : public Fake {
 public:
  explicit Wrong(Habits habits = {}) : habits_(habits) {}
  Habits habits() const override { return habits_; }

 private:
  void execute(const Plan& plan, const Tensors& tensors, void* space, Stream s) const override {
    Fake::execute(plan, tensors, space, s);
    auto* const out = static_cast<float*>(tensors.out.data);
    for (std::int64_t i = 0; i < plan.problem.total_q() * plan.problem.heads; ++i) {
      out[i * plan.problem.dim] += 1;
    }
  }
  Habits habits_;
};

TEST(Benchmark, EachIsJudgedByItsOwnResult) {
  const Wrong wrong;
  for (const auto& order : {std::array{&flash(), static_cast<const Implementation*>(&wrong)},
                            std::array{static_cast<const Implementation*>(&wrong), &flash()}}) {
    for (const Benchmark& result : run({order[0], order[1]}, "b1 sq40 h2 d8 fp32")) {
      const bool right = result.implementation == "flash";
      EXPECT_EQ(result.accuracy.verdict, right ? Verdict::pass : Verdict::fail);
      EXPECT_EQ(result.status, right ? Status::ok : Status::failed);
      EXPECT_TRUE(result.timed());
      EXPECT_EQ(result.may_win(), right);
      EXPECT_EQ(result.reason.starts_with("out: [0, "), !right) << result.reason;
    }
  }
}

TEST(Benchmark, WhatIsWrongIsToldWithTheCommandThatLooksCloser) {
  const Wrong ours, guest({.guest = true});
  Operands operands({Problem::parse("b1 sq40 h2 d8 fp32"), {.seed = 3}});
  const SpotCheck check(operands, Pass::forward);
  const std::array both{static_cast<const Implementation*>(&ours),
                        static_cast<const Implementation*>(&guest)};
  const auto results = benchmark(both, operands, Pass::forward, &check, {.deterministic = true},
                                 SamplingPolicy::exactly(2));
  EXPECT_TRUE(results[0].reason.ends_with(
      "; `strobe verify --problem \"b1 sq40 h2 d8 fp32\" --impl fake --pass forward --seed 3 "
      "--deterministic` checks every element"))
      << results[0].reason;
  EXPECT_EQ(results[1].status, Status::failed);
  EXPECT_EQ(results[1].reason.find("strobe verify"), std::string::npos) << results[1].reason;
}

TEST(Benchmark, TimesAndChecksEveryPassAndShape) {
  for (const char* problem : {"b1 sq16 h2 d8 fp32", "b2 sq16 sk9 h2 d8 bf16 causal bwd",
                              "lq15,0,9 h2 d8 fp16 bwd", "lq0,0,19 h2 d8 fp16"}) {
    const Benchmark result = run(flash(), problem);
    EXPECT_EQ(result.status, Status::ok) << problem << ": " << result.reason;
    EXPECT_EQ(result.measurement.samples_ms.size(), 2u);
    EXPECT_EQ(result.accuracy.verdict, Verdict::pass) << problem;
    EXPECT_GT(result.flops, 0);
  }
}

TEST(Benchmark, OfNothingIsFine) {
  const Benchmark result = run(flash(), "b2 sq0 sk4 h2 d8 fp32");
  EXPECT_EQ(result.status, Status::ok) << result.reason;
}

TEST(Benchmark, MemoryTakenBehindThePlansBackCounts) {
  if (!ResidentWatch().growth()) GTEST_SKIP() << "this system does not tell its resident memory";
  const Benchmark result = run(Greedy(), "b1 sq16 h2 d8 fp32");
  EXPECT_EQ(result.memory.workspace, 0);
  EXPECT_GT(result.memory.peak(), static_cast<std::int64_t>(Greedy::kHidden) * 9 / 10);
}

}  // namespace
}  // namespace strobe::lab
