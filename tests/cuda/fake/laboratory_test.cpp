// The laboratory on a GPU that is not real: what is timed, on which copies, and what becomes of
// work that does not fit. Fills are its only kernels, and each takes 10 us, or 20 if the host
// launches it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/shared_object.h"
#include "measure/benchmark.h"
#include "measure/recorded_calls.h"
#include "strobe/accelerator.h"
#include "strobe/cuda.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "verify/verify.h"

namespace strobe::lab {
namespace {

// Before anything asks for a driver.
const test::ScopedVariable kBackend("STROBE_CUDA_LIBRARY", STROBE_CUDA_BACKEND);
const test::ScopedVariable kDriver("STROBE_CUDA_DRIVER", STROBE_FAKE_GPU);
const test::ScopedVariable kNvml("STROBE_NVML", STROBE_FAKE_NVML);

/// Writes zeros, which is all that it is timed for.
class Painter : public Implementation {
 public:
  explicit Painter(std::size_t workspace = 0) : workspace_(workspace) {}

  std::string_view name() const override { return "painter"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cuda; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    return {.problem = problem,
            .workspace_bytes = workspace_,
            .state = std::make_shared<const int>(options.device)};
  }
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    const int index = *static_cast<const int*>(plan.state.get());
    const Accelerator& gpu = accelerator({Device::Kind::cuda, index});
    for (const TensorView* view : {&tensors.out, &tensors.lse}) {
      const auto elements = static_cast<std::size_t>(view->elements());
      gpu.fill(view->data, std::byte{0}, elements * size_of(view->dtype));
    }
  }

 private:
  std::size_t workspace_;
};

/// The unfused computation on inputs rounded to TF32. It may read the memory of this GPU.
class RoundsToTf32 final : public Painter {
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    std::array<std::vector<std::uint32_t>, 3> rounded;
    Tensors here = tensors;
    for (TensorView* view : {&here.q, &here.k, &here.v, &here.out, &here.lse}) view->device = {};
    std::size_t next = 0;
    for (TensorView* view : {&here.q, &here.k, &here.v}) {
      const auto* words = static_cast<const std::uint32_t*>(view->data);
      std::vector<std::uint32_t>& copy = rounded[next++];
      copy.assign(words, words + view->elements());
      for (std::uint32_t& word : copy) word = (word + 0x1000) & ~0x1FFFU;
      view->data = copy.data();
    }
    const Implementation& standard = Registry::instance().find("standard");
    const Plan same = standard.plan(plan.problem);
    std::vector<std::byte> workspace(same.workspace_bytes + 64);
    void* aligned = workspace.data();
    std::size_t space = workspace.size();
    std::align(64, same.workspace_bytes, aligned, space);
    standard.run(same, here, aligned, same.workspace_bytes);
  }
};

class FakeGpu : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!status.unavailable.empty()) GTEST_SKIP() << status.unavailable;
  }

  static std::vector<Benchmark> run(std::vector<const Implementation*> implementations,
                                    Cache cache = Cache::rotated, const char* problem = kMegabyte) {
    Operands operands({.problem = Problem::parse(problem)});
    SamplingPolicy policy = SamplingPolicy::exactly(3);
    policy.gpu_cache = cache;
    return benchmark(implementations, operands, Pass::forward, nullptr, {}, policy);
  }

  static Benchmark run(const Implementation& implementation, Cache cache = Cache::rotated,
                       const char* problem = kMegabyte) {
    return run(std::vector{&implementation}, cache, problem).front();
  }

  static constexpr const char* kMegabyte = "b1 sq1024 h1 d64 fp32";  // as large as the L2 cache
};

TEST_F(FakeGpu, ShortRunsAreReplayedAsAGraphOnCopiesInTurns) {
  const Benchmark result = run(Painter());
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  EXPECT_EQ(result.copies, 2);
  EXPECT_EQ(result.measurement.clock, "graph of 14");
  EXPECT_NEAR(result.measurement.ms.median, 0.02 + 0.01 / 14, 1e-6) << "one launch for all of them";
}

TEST_F(FakeGpu, WarmCachesTakeOneCopy) {
  const Benchmark result = run(Painter(), Cache::warm);
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  EXPECT_EQ(result.copies, 1);
  EXPECT_EQ(result.measurement.clock, "graph of 13");
}

TEST_F(FakeGpu, AFlushedCacheIsTimedCallByCall) {
  const Benchmark result = run(Painter(), Cache::cold);
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  EXPECT_EQ(result.copies, 1);
  EXPECT_EQ(result.measurement.clock, "events");
  EXPECT_NEAR(result.measurement.ms.median, 0.04, 1e-6) << "two fills, each launched";
}

TEST_F(FakeGpu, CallsForProfilersFindColdCachesWhereAsked) {
  int (*kernels_run)(int) = nullptr;
  ASSERT_TRUE(SharedObject({STROBE_FAKE_GPU}).find("fake_gpu_kernels_run", kernels_run));
  const auto kernels_of = [&](bool cold) {
    const int before = kernels_run(0);
    call_only(Painter(), Problem::parse(kMegabyte), std::array{Pass::forward}, {}, 3, cold);
    return kernels_run(0) - before;
  };
  EXPECT_EQ(kernels_of(false), 0) << "fills are not counted as such";
  EXPECT_EQ(kernels_of(true), 6) << "each time the cache is read through twice";
}

TEST_F(FakeGpu, CopiesAreAsManyAsTheCacheTakesAndNoMoreThanAFewDozen) {
  EXPECT_EQ(run(Painter(), Cache::rotated, "b1 sq4096 h1 d64 fp32").copies, 1);
  EXPECT_EQ(run(Painter(), Cache::rotated, "b1 sq512 h1 d64 fp32").copies, 3);
  EXPECT_EQ(run(Painter(), Cache::rotated, "b1 sq16 h1 d16 fp32").copies, 64);
}

TEST_F(FakeGpu, WhatDoesNotFitIsARowAndLeavesEverythingHealthy) {
  const Accelerator& gpu = accelerator({Device::Kind::cuda, 0});
  const std::int64_t used = 1'000'000'000 - gpu.free_bytes();
  const test::ScopedVariable small("STROBE_FAKE_GPU_MEMORY",
                                   std::to_string(used + 8'000'000).c_str());
  const Painter greedy(100'000'000);
  const Painter modest;
  const auto results = run({&greedy, &modest});
  EXPECT_EQ(results[0].status, Status::out_of_memory);
  EXPECT_EQ(results[0].reason, "cuda:0 is out of memory: needed 102.1 MB, 8.0 MB free");
  EXPECT_EQ(results[1].status, Status::ok) << results[1].reason;
  EXPECT_EQ(gpu.free_bytes(), 8'000'000) << "what was taken before it failed is given back";
}

TEST_F(FakeGpu, OperandsThatDoNotFitAreARow) {
  const test::ScopedVariable tiny("STROBE_FAKE_GPU_MEMORY", "4000000");
  const Benchmark result = run(Painter(), Cache::rotated, "b1 sq8192 h1 d64 fp32");
  EXPECT_EQ(result.status, Status::out_of_memory);
  EXPECT_FALSE(result.timed());
  EXPECT_EQ(run(Painter(), Cache::warm).status, Status::ok);
}

TEST_F(FakeGpu, Tf32IsAsExactAsItCanBeAndNotAsFp32) {
  const RoundsToTf32 implementation;
  const std::array<const Implementation*, 1> one{&implementation};
  const Case what{Problem::parse("b1 sq96 h2 d32 fp32")};
  const Report strict = verify(what, one, {}).front();
  EXPECT_EQ(strict.status, Status::failed);
  const Report allowed = verify(what, one, {.tf32 = true}).front();
  EXPECT_EQ(allowed.status, Status::ok) << allowed.reason;
}

TEST_F(FakeGpu, ACallIsTimedApartFromItsWork) {
  const Benchmark result = run(Painter(), Cache::cold);
  ASSERT_TRUE(result.measurement.call_ms);
  EXPECT_GT(*result.measurement.call_ms, 0);
  EXPECT_NE(*result.measurement.call_ms, result.measurement.ms.min);
}

TEST_F(FakeGpu, IsWatched) {
  const Benchmark result = run(Painter());
  ASSERT_TRUE(result.measurement.device.during);
  EXPECT_EQ(result.measurement.device.during->clock_mhz, 1755);
  EXPECT_EQ(result.measurement.device.slowed_by, std::vector<std::string>{"power cap"});
}

TEST_F(FakeGpu, CountsKernelsWithoutRunningThem) {
  const Accelerator& gpu = accelerator({Device::Kind::cuda, 0});
  const auto memory = gpu.allocate(64);
  gpu.fill(memory.get(), std::byte{1}, 64);
  EXPECT_EQ(gpu.count_kernels([&] { gpu.fill(memory.get(), std::byte{2}, 64); }), 0)
      << "a fill is none";
  EXPECT_EQ(*memory, std::byte{1}) << "it was only recorded";
  EXPECT_EQ(gpu.count_kernels([] {}), 0);
  EXPECT_EQ(gpu.count_kernels([&] { gpu.time_ms([] {}); }), 1) << "the pause before the clock";
}

}  // namespace
}  // namespace strobe::lab
