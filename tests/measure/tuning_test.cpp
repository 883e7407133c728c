#include "measure/tuning.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::lab {
namespace {

/// Computes by the unfused computation, and says that it took as long as its variant is named for,
/// in microseconds: "900", and "900 wrong" writes zeros, "900 spills" cannot be planned.
class Waits final : public Implementation {
 public:
  std::string_view name() const override { return "waits"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }
  std::vector<std::string> variants(const Problem&, const PlanOptions&) const override {
    return {"900"};
  }

  mutable std::atomic<int> plans = 0;
  mutable std::atomic<bool> keeps_its_reference = true;  ///< also for a small problem
  mutable double last_us = 0;                            ///< of the last run

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    ++plans;
    const std::string& variant = options.variant;
    if (variant.ends_with("spills")) throw Unsupported("variant " + variant, {"registers"});
    if (variant.ends_with("broken")) throw Error("does not compile");
    if (variant.ends_with("unknown")) throw InvalidArgument("variant", "is unknown");
    const Plan plan = standard().plan(problem);
    const bool is_long = problem.keys() > 1000;
    if (!is_long && options.reference == SoftmaxReference::automatic) keeps_its_reference = false;
    return {.problem = problem,
            .tuning = {{"registers", "40"}, {"reference", is_long ? "fixed" : "running"}},
            .workspace_bytes = plan.workspace_bytes,
            .state = std::make_shared<const std::string>(variant)};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace, Stream) const override {
    const auto& variant = *static_cast<const std::string*>(plan.state.get());
    const Plan same = standard().plan(plan.problem);
    standard().run(same, tensors, workspace, same.workspace_bytes);
    if (variant.ends_with("wrong")) {
      const TensorView& out = plan.problem.pass == Pass::forward ? tensors.out : tensors.dq;
      std::fill_n(static_cast<float*>(out.data), out.elements(), 0.0F);
    }
    last_us = variant.empty() ? 900 : std::atof(variant.c_str());
  }

 private:
  static const Implementation& standard() { return Registry::instance().find("standard"); }
};

/// Reads what Waits says, and adds the noise of a machine: whatever this one is busy with, a test
/// sees the same times.
class Told final : public Stopwatch {
 public:
  explicit Told(const Waits& waits) : waits_(waits) {}

  std::string_view name() const override { return "told"; }
  double time_ms(const std::function<void()>& run) override {
    run();
    return waits_.last_us * noise_(random_) * 1e-3;
  }
  void evict_caches() override {}

 private:
  const Waits& waits_;
  std::minstd_rand random_{1};
  std::uniform_real_distribution<> noise_{1, 1.02};
};

Tuning tune_waits(
    const std::vector<std::string>& variants, const char* problem = "sq64 h1 d16 fp32",
    const Waits& waits = {},
    const TuningProgress& progress = [](std::size_t, std::size_t, const std::string&) {}) {
  Told stopwatch(waits);
  return tune(waits, Problem::parse(problem), {}, variants,
              {.budget_s = 2, .threads = 2, .stopwatch = &stopwatch}, progress);
}

TEST(Tuning, FindsTheFastestAndTheLossOfTheUsualOne) {
  const Tuning tuning = tune_waits({"900", "1800", "600", "1200"});
  ASSERT_EQ(tuning.variants.size(), 4u);
  EXPECT_TRUE(tuning.improved());
  EXPECT_EQ(tuning.winner().variant, "600");
  EXPECT_NEAR(tuning.loss(), 0.5, 0.02);
  EXPECT_EQ(tuning.usual().ratio, 1);
  EXPECT_NEAR(tuning.variants[1].ratio, 2, 0.04);
  EXPECT_EQ(tuning.winner().benchmark.options.variant, "600");
  EXPECT_EQ(tuning.winner().benchmark.accuracy.verdict, Verdict::pass);
}

TEST(Tuning, TheUsualOneStaysWhereNothingIsFaster) {
  const Tuning tuning = tune_waits({"900", "1300", "1200"});
  EXPECT_FALSE(tuning.improved());
  EXPECT_EQ(tuning.winner().variant, "900");
  EXPECT_EQ(tuning.loss(), 0);
  EXPECT_GT(tuning.variants[2].ratio, 1);
}

TEST(Tuning, WhatIsWrongOrSpillsOrDoesNotCompileDropsOut) {
  const Tuning tuning = tune_waits({"900", "300 wrong", "300 spills", "300 broken", "600"});
  EXPECT_EQ(tuning.winner().variant, "600");
  EXPECT_EQ(tuning.variants[1].benchmark.status, Status::failed);
  EXPECT_EQ(tuning.variants[2].benchmark.status, Status::unsupported);
  EXPECT_EQ(tuning.variants[2].ratio, 0);
  EXPECT_EQ(tuning.variants[3].benchmark.status, Status::failed);
  EXPECT_EQ(tuning.variants[3].benchmark.reason, "does not compile");
}

TEST(Tuning, WhatIsTooLargeToJudgeIsJudgedOnASmallerProblem) {
  // One row cannot be judged while it is timed.
  const Tuning tuning = tune_waits({"900", "300 wrong", "600"}, "sq1 sk64 h1 d16 fp32");
  EXPECT_EQ(tuning.winner().variant, "600");
  EXPECT_EQ(tuning.variants[1].benchmark.status, Status::failed);
  EXPECT_EQ(tuning.winner().benchmark.accuracy.scope, "a smaller problem");
}

TEST(Tuning, TheSmallerProblemIsComputedAsTheLargeOneWas) {
  const Waits waits;
  const Tuning tuning = tune_waits({"900", "600"}, "sq1 sk1200 h1 d16 fp32", waits);
  EXPECT_EQ(tuning.winner().benchmark.accuracy.scope, "a smaller problem");
  EXPECT_TRUE(waits.keeps_its_reference);
}

TEST(Tuning, AVariantIsOfTheProblemsOwnPass) {
  const Tuning tuning = tune_waits({"900", "500 wrong", "600"}, "sq64 h1 d16 fp32 bwd");
  EXPECT_EQ(tuning.winner().variant, "600");
  EXPECT_EQ(tuning.variants[1].benchmark.status, Status::failed);
}

TEST(Tuning, WithoutTheUsualOneThereIsNothing) {
  const Tuning tuning = tune_waits({"900 spills", "600"});
  EXPECT_EQ(tuning.usual().benchmark.status, Status::unsupported);
  EXPECT_FALSE(tuning.improved());
  EXPECT_EQ(tuning.variants[1].ratio, 0) << "nothing to compare with";
  EXPECT_FALSE(tuning.comparable());
  const Tuning wrong = tune_waits({"900 wrong", "600"});
  EXPECT_FALSE(wrong.comparable());
  EXPECT_FALSE(wrong.improved());
}

TEST(Tuning, AWrongNameIsTheCallersFault) {
  EXPECT_THROW(tune_waits({"900", "unknown"}), InvalidArgument);
}

TEST(Tuning, ManyRunInHeatsAndStepsAreCounted) {
  std::vector<std::string> variants{"900"};
  for (int i = 0; i < 15; ++i) variants.push_back(std::to_string(1000 + i));
  variants.push_back("500");
  std::size_t steps = 0;
  const Tuning tuning = tune_waits(variants, "sq64 h1 d16 fp32", {},
                                   [&](std::size_t done, std::size_t total, const std::string&) {
                                     EXPECT_EQ(done, steps++);
                                     EXPECT_EQ(total, tuning_steps(variants.size()));
                                   });
  EXPECT_EQ(steps, tuning_steps(variants.size()));
  EXPECT_EQ(tuning.winner().variant, "500");
  for (const VariantResult& result : tuning.variants) {
    EXPECT_GT(result.ratio, 0) << result.variant;
    EXPECT_LE(result.benchmark.rivals, 7u) << result.variant;
  }
}

TEST(Variants, OfAnImplementationWithoutAnyAreRefused) {
  const Implementation& standard = Registry::instance().find("standard");
  const Problem problem = Problem::parse("sq8 h1 d16 fp32");
  EXPECT_TRUE(standard.variants(problem).empty());
  try {
    standard.plan(problem, {.variant = "128x128"});
    FAIL() << "is refused";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), "variant");
    EXPECT_NE(std::string(error.what()).find("standard has only one way"), std::string::npos);
  }
  EXPECT_THROW(standard.keep_variant(problem, {}, TunedVariant{}), Unsupported);
}

}  // namespace
}  // namespace strobe::lab
