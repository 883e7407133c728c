// CUPTI on a real GPU. What it refuses is in the message, with its own name for the error.
#include <algorithm>
#include <chrono>
#include <memory>

#include "cuda/accelerator.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "cuda/kernels/pause/pause.h"
#include "cuda/kernels/read_all/read_all.h"
#include "measure/device_metrics.h"

namespace strobe::cuda {
namespace {

class CuptiOnGpu : public test::OnGpuWithCompiler {
 protected:
  static constexpr long long kPauseNanoseconds = 200'000;
  static constexpr std::size_t kBytes = 1 << 20;

  static const Accelerator& gpu() { return accelerator_at(0); }

  void SetUp() override {
    OnGpuWithCompiler::SetUp();
    if (IsSkipped()) return;
    pause_ = std::make_unique<pause::Pause>(device());
    memory_ = gpu().allocate(kBytes);
  }

  void work() const {
    const driver::ContextScope scope(device());
    gpu().fill(memory_.get(), std::byte{1}, kBytes);
    pause_->launch(kPauseNanoseconds, static_cast<abi::Stream>(gpu().stream()));
  }

 private:
  std::unique_ptr<pause::Pause> pause_{};
  std::shared_ptr<std::byte> memory_{};
};

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

TEST_F(CuptiOnGpu, KernelsAndFillsAreSeenWhenTheyRan) {
  constexpr std::int64_t kClocksDiffer = 1'000'000;
  const std::int64_t before = now_ns();
  const DeviceActivity activity = gpu().observe([this] { work(); });
  const std::int64_t after = now_ns();
  ASSERT_EQ(activity.refused, "");
  EXPECT_EQ(activity.dropped, 0);
  const auto of = [&](DeviceWork::Kind kind) {
    return std::find_if(activity.work.begin(), activity.work.end(),
                        [&](const DeviceWork& each) { return each.kind == kind; });
  };
  const auto kernel = of(DeviceWork::Kind::kernel), fill = of(DeviceWork::Kind::fill);
  ASSERT_NE(kernel, activity.work.end());
  ASSERT_NE(fill, activity.work.end());
  EXPECT_NE(kernel->name.find("pause"), std::string::npos) << kernel->name;
  EXPECT_GE(kernel->end_ns - kernel->begin_ns, kPauseNanoseconds * 9 / 10);
  EXPECT_GT(kernel->begin_ns, before - kClocksDiffer);
  EXPECT_LT(kernel->end_ns, after + kClocksDiffer);
  EXPECT_GT(kernel->launch.registers, 0);
  EXPECT_EQ(kernel->launch.grid[0], 1);
  EXPECT_EQ(fill->bytes, static_cast<std::int64_t>(kBytes));
  EXPECT_EQ(fill->stream, kernel->stream);
}

TEST_F(CuptiOnGpu, NothingIsSeenAfterwardsAndASecondTimeAsMuchAsTheFirst) {
  const std::size_t first = gpu().observe([this] { work(); }).work.size();
  work();
  const DeviceActivity second = gpu().observe([this] { work(); });
  EXPECT_EQ(second.refused, "");
  EXPECT_EQ(second.work.size(), first);
}

TEST_F(CuptiOnGpu, CountersAreReadOrRefusedWithAReason) {
  int calls = 0;
  const DeviceCounts counts = gpu().count(lab::device_metrics(), [&] {
    ++calls;
    work();
  });
  if (counts.refused.find("PRIVILEGES") != std::string::npos) GTEST_SKIP() << counts.refused;
  ASSERT_EQ(counts.refused, "");
  EXPECT_EQ(calls, counts.passes + 1);
  for (const std::string& name : counts.unknown) RecordProperty(name, "unknown");
  ASSERT_EQ(counts.kernels.size(), 1u) << "a fill is no kernel";
  EXPECT_NE(counts.kernels[0].name.find("pause"), std::string::npos);
  for (std::size_t i = 0; i < counts.metrics.size(); ++i) {
    EXPECT_GE(counts.kernels[0].values[i], 0) << counts.metrics[i];
  }
  EXPECT_GE(lab::total(counts, lab::metric::kTime).value_or(0), kPauseNanoseconds * 0.9);
  EXPECT_LT(lab::average(counts, lab::metric::kTensorBusy).value_or(100), 1);
}

TEST_F(CuptiOnGpu, CountsFindCachesColdEachTime) {
  constexpr std::size_t kFewBytes = 8 << 20;  // which any L2 cache would keep
  const auto stream = static_cast<abi::Stream>(gpu().stream());
  const read_all::ReadMemory memory(device(), kFewBytes, stream);
  const std::vector<std::string> metrics{lab::metric::kDramRead, lab::metric::kDramWritten};
  const DeviceCounts counts = gpu().count(metrics, [&] {
    const driver::ContextScope scope(device());
    memory.launch(stream);
  });
  if (counts.refused.find("PRIVILEGES") != std::string::npos) GTEST_SKIP() << counts.refused;
  ASSERT_EQ(counts.refused, "");
  ASSERT_EQ(counts.kernels.size(), 1u) << "what empties the caches is not counted";
  EXPECT_GT(lab::total(counts, lab::metric::kDramRead).value_or(0), 0.95 * kFewBytes);
  EXPECT_LT(lab::total(counts, lab::metric::kDramWritten).value_or(1e9), 0.1 * kFewBytes);
}

TEST_F(CuptiOnGpu, SeesKernelsAgainAfterItHasCounted) {
  (void)gpu().count(lab::device_metrics(), [this] { work(); });
  const DeviceActivity activity = gpu().observe([this] { work(); });
  EXPECT_EQ(activity.refused, "");
  EXPECT_GE(activity.work.size(), 2u);
}

}  // namespace
}  // namespace strobe::cuda
