#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "strobe/accelerator.h"

namespace strobe::lab {

/// How the work of one device is timed: the seam between the sampler and the devices.
class Stopwatch {
 public:
  Stopwatch() = default;
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  virtual ~Stopwatch();

  /// What it reads the time from: "steady", "events".
  virtual std::string_view name() const = 0;

  /// Runs it, and returns the milliseconds that the device took until the work was done.
  virtual double time_ms(const std::function<void()>& run) = 0;

  /// Whether `run` returns before the work is done, so that what the call costs the host is
  /// another time than what the work takes.
  virtual bool calls_ahead() const { return false; }

  /// Something that does `run` so many times at once, to be timed in its place: what a device does
  /// in a few microseconds takes longer to begin than to do. Empty where that is not so, or where
  /// the work cannot be recorded.
  virtual std::function<void()> recorded(const std::function<void()>& /*run*/, int /*times*/) {
    return {};
  }

  /// Drives everything that an earlier run left out of the device's caches.
  virtual void evict_caches() = 0;

  /// The device's clocks and sensors as they are now; nothing of the CPU.
  virtual std::optional<DeviceState> state() { return std::nullopt; }
};

/// The steady clock, for work that is done when `run` returns.
Stopwatch& cpu_stopwatch();

/// That of a device; there is one for each. Throws Unsupported if there is no such device.
Stopwatch& stopwatch_of(Device device);

}  // namespace strobe::lab
