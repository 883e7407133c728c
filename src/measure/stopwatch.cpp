#include "measure/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::lab {
namespace {

class CpuStopwatch final : public Stopwatch {
 public:
  std::string_view name() const override { return "steady"; }

  double time_ms(const std::function<void()>& run) override {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return elapsed.count();
  }

  /// Writes twice as much as the last-level cache holds, one word of every line.
  void evict_caches() override {
    constexpr std::size_t kWordsPerLine = 8;
    constexpr std::int64_t kLeast = 64 << 20;
    if (other_.empty()) {
      const std::int64_t bytes = std::max(2 * machine().cache_bytes, kLeast);
      other_.resize(static_cast<std::size_t>(bytes) / sizeof other_[0]);
    }
    for (std::size_t i = 0; i < other_.size(); i += kWordsPerLine) ++other_[i];
  }

 private:
  std::vector<unsigned long long> other_{};
};

/// For runs that only put work on the device's stream.
class DeviceStopwatch final : public Stopwatch {
 public:
  explicit DeviceStopwatch(Device device) : device_(accelerator(device)) {}

  std::string_view name() const override { return "events"; }
  double time_ms(const std::function<void()>& run) override { return device_.time_ms(run); }
  bool calls_ahead() const override { return true; }
  std::function<void()> recorded(const std::function<void()>& run, int times) override {
    try {
      return device_.record([&] {
        for (int i = 0; i < times; ++i) run();
      });
    } catch (const Error&) {  // a library that waits or allocates: timed call by call
      return {};
    }
  }
  void evict_caches() override { device_.evict_caches(); }
  std::optional<DeviceState> state() override { return device_.state(); }

 private:
  const Accelerator& device_;
};

}  // namespace

Stopwatch::~Stopwatch() = default;

Stopwatch& cpu_stopwatch() {
  static CpuStopwatch stopwatch;
  return stopwatch;
}

Stopwatch& stopwatch_of(Device device) {
  if (device.kind == Device::Kind::cpu) return cpu_stopwatch();
  static std::mutex mutex;
  static std::map<int, DeviceStopwatch> made;
  const std::scoped_lock lock(mutex);
  return made.try_emplace(device.index, device).first->second;
}

}  // namespace strobe::lab
