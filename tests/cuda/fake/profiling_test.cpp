// What a GPU tells of its work, by a profiling library that is not real: see fake_cupti.c.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/shared_object.h"
#include "measure/device_metrics.h"
#include "report/trace.h"
#include "report/trace_format.h"
#include "strobe/accelerator.h"
#include "strobe/cuda.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

// Before anything asks for it.
const test::ScopedVariable kCupti("STROBE_CUPTI", STROBE_FAKE_CUPTI);

class FakeCupti : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!status.unavailable.empty()) GTEST_SKIP() << status.unavailable;
  }

  static const Accelerator& gpu() { return accelerator({Device::Kind::cuda, 0}); }

  template <class Function>
  static Function* find(const char* library, const char* name) {
    Function* function = nullptr;
    EXPECT_TRUE(SharedObject({library}).find(name, function)) << name;
    return function;
  }

  /// What was begun and not ended.
  static int left_open() { return find<int()>(STROBE_FAKE_CUPTI, "fake_cupti_left_open")(); }

  static DeviceCounts count(int* calls = nullptr) {
    return gpu().count(device_metrics(), [&] {
      if (calls != nullptr) ++*calls;
    });
  }
};

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

TEST_F(FakeCupti, TellsWhatTheGpuDidOnOurClock) {
  int calls = 0;
  const std::int64_t before = now_ns();
  const DeviceActivity activity = gpu().observe([&] { ++calls; });
  const std::int64_t after = now_ns();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(activity.refused, "");
  EXPECT_EQ(activity.device, "GPU 0, Fake GPU");
  EXPECT_EQ(activity.dropped, 1);
  ASSERT_EQ(activity.work.size(), 4u) << "and not what another GPU did";
  const std::vector<std::string> names{"copy to the device", "strobe::forward(float const*)",
                                       "fold", "fill"};
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(activity.work[i].name, names[i]);
  constexpr std::int64_t kSoon = 1'000'000'000;  // against a million seconds that clocks differ by
  EXPECT_GT(activity.work.front().begin_ns, before - kSoon);
  EXPECT_LT(activity.work.back().end_ns, after + kSoon);
  const DeviceWork& kernel = activity.work[1];
  EXPECT_EQ(kernel.kind, DeviceWork::Kind::kernel);
  EXPECT_EQ(kernel.end_ns - kernel.begin_ns, 2000);
  EXPECT_EQ(kernel.stream, 7);
  EXPECT_EQ(kernel.launch.grid, (std::array{132, 2, 1}));
  EXPECT_EQ(kernel.launch.block, (std::array{384, 1, 1}));
  EXPECT_EQ(kernel.launch.registers, 168);
  EXPECT_EQ(kernel.launch.static_shared_bytes, 16);
  EXPECT_EQ(kernel.launch.dynamic_shared_bytes, 200'000);
  EXPECT_EQ(kernel.launch.local_bytes, 24);
  EXPECT_EQ(activity.work[0].bytes, 4096);
}

TEST_F(FakeCupti, StreamsAreTracksAndWhatOverlapsHasItsOwn) {
  const DeviceActivity activity = gpu().observe([] {});
  const std::vector<TraceTrack> tracks = device_tracks(activity);
  ASSERT_EQ(tracks.size(), 3u);
  EXPECT_EQ(tracks[0].thread_name, "stream 7");
  EXPECT_EQ(tracks[1].thread_name, "stream 7, overlapping");
  EXPECT_EQ(tracks[2].thread_name, "stream 8");
  EXPECT_EQ(tracks[0].process_name, "GPU 0, Fake GPU");
  test::expect_chrome_trace(chrome_trace(tracks));
}

TEST_F(FakeCupti, WorkGoesOnWhereAnotherProfilerIsAttached) {
  const test::ScopedVariable mode("STROBE_FAKE_CUPTI", "attached");
  int calls = 0;
  const DeviceActivity activity = gpu().observe([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(activity.work.empty());
  EXPECT_NE(activity.refused.find("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED; another "
                                  "profiler is at work"),
            std::string::npos)
      << activity.refused;
}

TEST_F(FakeCupti, AnErrorOfTheWorkIsThrownAndNothingStaysOn) {
  EXPECT_THROW(gpu().observe([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(gpu().count(device_metrics(), [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(left_open(), 0);
  EXPECT_EQ(gpu().observe([] {}).work.size(), 4u);
}

TEST_F(FakeCupti, CountsEachKernelInAsManyPassesAsItTakes) {
  int calls = 0;
  const DeviceCounts counts = count(&calls);
  EXPECT_EQ(counts.refused, "");
  EXPECT_EQ(counts.passes, 3);
  EXPECT_EQ(calls, 4) << "once to see which kernels there are";
  ASSERT_EQ(counts.kernels.size(), 2u);
  EXPECT_EQ(counts.kernels[0].name, "strobe::forward(float const*)");
  EXPECT_EQ(counts.kernels[0].launch.registers, 168);
  ASSERT_EQ(counts.unknown.size(), 1u);
  EXPECT_NE(counts.unknown[0].find("stalled_gmma"), std::string::npos);
  EXPECT_EQ(total(counts, metric::kDramRead), 2e6);
  EXPECT_EQ(average(counts, metric::kSmActive), 70) << "by the time that each took";
  EXPECT_EQ(total(counts, metric::kBankConflicts), std::nullopt) << "which is no number";
  EXPECT_EQ(total(counts, "no such metric"), std::nullopt);
  EXPECT_EQ(stalls(counts).front().reason, "long scoreboard");
  EXPECT_DOUBLE_EQ(stalls(counts).front().part, 6 / (6 + 17 * 0.125));
  EXPECT_EQ(left_open(), 0);
}

/// Kernels that had run when a pass started, and when it stopped.
struct SeenPass {
  int at_start = 0, at_stop = 0;
};
std::vector<SeenPass> seen_passes;
int (*kernels_run)(int) = nullptr;

void watch_pass(int starts) {
  if (starts != 0) seen_passes.emplace_back().at_start = kernels_run(0);
  seen_passes.back().at_stop = kernels_run(0);
}

TEST_F(FakeCupti, CachesAreEmptiedWhenAPassHasStarted) {
  kernels_run = find<int(int)>(STROBE_FAKE_GPU, "fake_gpu_kernels_run");
  auto* const watch = find<void(void (*)(int))>(STROBE_FAKE_CUPTI, "fake_cupti_watch_passes");
  seen_passes.clear();
  watch(watch_pass);
  const DeviceCounts counts = count();
  watch(nullptr);
  ASSERT_EQ(seen_passes.size(), static_cast<std::size_t>(counts.passes));
  const SeenPass& first = seen_passes.front();
  EXPECT_GT(first.at_stop, first.at_start) << "CUPTI's own writes would be in them";
  int before = first.at_start;
  for (const SeenPass& pass : seen_passes) {
    EXPECT_EQ(pass.at_start, before) << "something is run that no pass counts";
    EXPECT_EQ(pass.at_stop - pass.at_start, first.at_stop - first.at_start) << "not the same again";
    before = pass.at_stop;
  }
}

TEST_F(FakeCupti, FindsAMetricByTheNameThatTheChipHasForIt) {
  const test::ScopedVariable mode("STROBE_FAKE_CUPTI", "geforce");
  const DeviceCounts counts = count();
  ASSERT_EQ(counts.unknown.size(), 1u) << "but for what has no other name";
  EXPECT_EQ(unknown_stalls(counts), std::vector<std::string>{"gmma"});
  EXPECT_EQ(total(counts, metric::kDramRead), 6e6);
  EXPECT_EQ(total(counts, metric::kDramWritten), 2e6);
}

TEST_F(FakeCupti, TheLastKernelsThatWereCountedAreThoseOfTheCall) {
  const auto named = [](const DeviceCounts& counts) {
    std::vector<std::string> names;
    for (const CountedKernel& kernel : counts.kernels) names.push_back(kernel.name);
    return names;
  };
  const DeviceCounts even = count();
  const test::ScopedVariable mode("STROBE_FAKE_CUPTI", "uneven");  // one more is counted than seen
  const DeviceCounts uneven = count();
  ASSERT_EQ(uneven.refused, "");
  EXPECT_EQ(named(uneven), named(even));
  EXPECT_EQ(uneven.kernels.front().values.size(), uneven.metrics.size());
}

TEST_F(FakeCupti, WhatIsRefusedSaysWhyAndWhatToDo) {
  for (const auto& [mode, sentence] : std::initializer_list<std::pair<const char*, const char*>>{
           {"forbidden",
            "cuptiProfilerGetCounterAvailability returns CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; this "
            "user may not read the GPU's counters: run as root"},
           {"virtual", "this is a virtual GPU"},
           {"endless", "a call must launch the same kernels each time"}}) {
    const test::ScopedVariable set("STROBE_FAKE_CUPTI", mode);
    const DeviceCounts counts = count();
    EXPECT_NE(counts.refused.find(sentence), std::string::npos) << counts.refused;
    EXPECT_TRUE(counts.kernels.empty());
    EXPECT_EQ(left_open(), 0) << mode;
  }
}

}  // namespace
}  // namespace strobe::lab
