#include "cuda/accelerator.h"

#include <map>
#include <mutex>

#include "core/text.h"
#include "cuda/baselines/standard/square_product.h"
#include "cuda/cupti/activity.h"
#include "cuda/cupti/counters.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/graph.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/nvml.h"
#include "cuda/driver/stream.h"
#include "cuda/kernels/pause/pause.h"
#include "cuda/kernels/peaks/peaks.h"
#include "cuda/kernels/read_all/read_all.h"

namespace strobe::cuda {
namespace {

class CudaAccelerator final : public Accelerator {
 public:
  explicit CudaAccelerator(int index)
      : device_(driver::Device::at(index)),
        stream_(device_),
        start_(device_),
        end_(device_),
        sensors_(device_.pci_bus_id()) {}

  Device device() const override { return {Device::Kind::cuda, device_.index()}; }
  Stream stream() const override { return stream_.get(); }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) const override {
    auto memory = std::make_shared<driver::DeviceMemory>(device_, bytes);
    return {memory, static_cast<std::byte*>(memory->data())};
  }

  void upload(void* to, const void* from, std::size_t bytes) const override {
    const driver::ContextScope scope(device_);
    driver::copy_async(to, from, bytes, stream_.get());
  }

  void fill(void* data, std::byte value, std::size_t bytes) const override {
    const driver::ContextScope scope(device_);
    driver::fill_async(data, std::to_integer<unsigned char>(value), bytes, stream_.get());
  }

  void download(void* to, const void* from, std::size_t bytes) const override {
    const driver::ContextScope scope(device_);
    driver::copy_async(to, from, bytes, stream_.get());
    stream_.synchronize();
  }

  void wait() const override {
    const driver::ContextScope scope(device_);
    stream_.synchronize();
  }

  /// The stream pauses first: everything is on it before the clock starts, so the host's time does
  /// not count.
  double time_ms(const std::function<void()>& work) const override {
    constexpr long long kPauseNanoseconds = 100'000;
    const driver::ContextScope scope(device_);
    std::call_once(pause_made_, [this] { pause_ = std::make_unique<pause::Pause>(device_); });
    pause_->launch(kPauseNanoseconds, stream_.get());
    start_.record(stream_.get());
    work();
    end_.record(stream_.get());
    end_.synchronize();
    return driver::milliseconds_between(start_, end_);
  }

  std::function<void()> record(const std::function<void()>& work) const override {
    auto graph =
        std::make_shared<const driver::Graph>(driver::Graph::capture(device_, stream_.get(), work));
    return [this, graph] {
      const driver::ContextScope scope(device_);
      graph->launch(stream_.get());
    };
  }

  int count_kernels(const std::function<void()>& work) const override {
    return driver::count_kernels(device_, stream_.get(), work);
  }

  std::int64_t free_bytes() const override {
    return static_cast<std::int64_t>(driver::free_memory(device_));
  }

  std::int64_t cache_bytes() const override { return device_.l2_bytes(); }

  /// By reading, for what is written would go to memory while the next work is timed or counted.
  /// Twice, for caches do not forget in the exact order of use. What kernels have asked to be kept
  /// for long is told to go like the rest.
  void evict_caches() const override {
    const driver::ContextScope scope(device_);
    stream_.synchronize();
    driver::api().cuCtxResetPersistingL2Cache.unchecked();  // without, some of it may stay
    std::call_once(other_made_, [this] {
      other_ = std::make_unique<read_all::ReadMemory>(
          device_, 2 * static_cast<std::size_t>(cache_bytes()), stream_.get());
    });
    for (int i = 0; i < 2; ++i) other_->launch(stream_.get());
  }

  std::vector<MultiplyRate> multiply_rates() const override {
    return peaks::measure(device_, stream_.get(),
                          [this](const std::function<void()>& work) { return time_ms(work); });
  }

  SquareProduct square_product(std::int64_t size, DType dtype, bool tf32) const override {
    return standard::square_product(device_, size, dtype, tf32, stream_.get());
  }

  DeviceState state() const override { return sensors_.read(); }
  DeviceSettings settings() const override { return sensors_.read_settings(); }

  DeviceActivity observe(const std::function<void()>& work) const override {
    DeviceActivity activity = cupti::observe(device_.index(), done(work));
    activity.device = concat("GPU ", device_.index(), ", ", device_.name());
    return activity;
  }

  DeviceCounts count(std::span<const std::string> metrics,
                     const std::function<void()>& call) const override {
    return cupti::count(device_, metrics, done([this] { evict_caches(); }), done(call));
  }

 private:
  /// The same, and waits until the device has done it.
  std::function<void()> done(const std::function<void()>& work) const {
    return [this, &work] {
      work();
      wait();
    };
  }

  const driver::Device& device_;
  driver::Stream stream_;
  mutable driver::Event start_;
  mutable driver::Event end_;
  driver::Sensors sensors_;
  mutable std::once_flag pause_made_{};
  mutable std::unique_ptr<pause::Pause> pause_{};
  mutable std::once_flag other_made_{};
  mutable std::unique_ptr<read_all::ReadMemory> other_{};
};

}  // namespace

const Accelerator& accelerator_at(int index) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<CudaAccelerator>> made;
  const std::scoped_lock lock(mutex);
  auto& accelerator = made[index];
  if (!accelerator) accelerator = std::make_unique<CudaAccelerator>(index);
  return *accelerator;
}

}  // namespace strobe::cuda
