#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/device_profile.h"
#include "strobe/export.h"
#include "strobe/implementation.h"
#include "strobe/product.h"
#include "strobe/tensor.h"

namespace strobe {

/// What a device says of itself at a moment; what it does not tell is absent.
struct DeviceState {
  std::optional<int> clock_mhz{}, memory_clock_mhz{};  ///< of its processors, of its memory
  std::optional<double> power_w{};
  std::optional<int> temperature_c{};
  std::optional<std::int64_t> memory_used_bytes{};  ///< by all processes
  std::vector<std::string> slowed_by{};  ///< what keeps its clocks down, "power cap" for instance
};

/// How a device is set up, and who else uses it; what it does not tell is absent.
struct DeviceSettings {
  struct Process {
    std::int64_t id = 0;
    std::optional<std::int64_t> memory_bytes{};
  };

  std::optional<int> most_clock_mhz{}, most_memory_clock_mhz{};
  std::optional<double> power_limit_w{}, usual_power_limit_w{};
  std::optional<bool> persistent{};  ///< whether the driver stays loaded between processes
  std::vector<Process> processes{};  ///< that compute there beside this one
};

/// Operations per second of one way to multiply and add, which count two.
struct MultiplyRate {
  std::string name{};  ///< "wgmma"
  DType dtype = DType::fp32;
  bool tf32 = false;  ///< of fp32 numbers that are rounded to TF32
  double per_second = 0;
};

/// What a program needs of a device with memory of its own besides implementations: memory, copies,
/// a stream to put work on, and time. Everything is ordered on that stream.
class STROBE_API Accelerator {
 public:
  Accelerator() = default;
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;
  virtual ~Accelerator();

  virtual Device device() const = 0;
  virtual Stream stream() const = 0;

  /// Aligned to 256 bytes, given back with the last owner. Throws OutOfMemory saying how much there
  /// is.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) const = 0;

  virtual void upload(void* to, const void* from, std::size_t bytes) const = 0;
  virtual void fill(void* data, std::byte value, std::size_t bytes) const = 0;
  /// Waits until it is there.
  virtual void download(void* to, const void* from, std::size_t bytes) const = 0;

  /// Waits until everything on the stream is done. Throws Error if some of it failed.
  virtual void wait() const = 0;

  /// Milliseconds that the device took for what `work` puts on the stream; waits for it.
  virtual double time_ms(const std::function<void()>& work) const = 0;

  /// Records what `work` puts on the stream, without doing it. What is returned does all of it by a
  /// single launch. Throws Error if some of it cannot be recorded.
  virtual std::function<void()> record(const std::function<void()>& work) const = 0;

  /// Kernels, copies and fills apart, that `work` puts on the stream; none of it is done. Throws
  /// Error if some of it cannot be recorded.
  virtual int count_kernels(const std::function<void()>& work) const = 0;

  /// Of its memory, what nobody has taken.
  virtual std::int64_t free_bytes() const = 0;

  /// Of the largest cache, which all of its processors share.
  virtual std::int64_t cache_bytes() const = 0;

  /// Drives what earlier work left out of the device's caches, and leaves nothing there itself that
  /// is still to be written to memory.
  virtual void evict_caches() const = 0;

  /// What its instructions do when it does nothing else. Measures it, which takes less than a
  /// second, or a few if kernels are to be compiled.
  virtual std::vector<MultiplyRate> multiply_rates() const = 0;

  /// Of two matrices in its memory, with fp32 rounded to TF32 if `tf32`. Throws Unsupported if
  /// there is no library, or none for this dtype.
  virtual SquareProduct square_product(std::int64_t size, DType dtype, bool tf32) const = 0;

  /// Reads its clocks and sensors, and changes none of them; where there is nothing that tells,
  /// everything is absent.
  virtual DeviceState state() const = 0;
  virtual DeviceSettings settings() const = 0;

  /// What the device does while `work` runs, and until it is done. Where nothing can be learnt of
  /// it, `work` runs all the same.
  virtual DeviceActivity observe(const std::function<void()>& work) const = 0;

  /// What the device counts while `call` runs: it is called until everything has been counted, each
  /// time with evicted caches, and must do the same each time. Where nothing can be counted, it may
  /// not be called at all.
  virtual DeviceCounts count(std::span<const std::string> metrics,
                             const std::function<void()>& call) const = 0;
};

/// That of a device other than the CPU; there is one for each. Throws Unsupported with what is
/// missing.
STROBE_API const Accelerator& accelerator(Device device);

}  // namespace strobe
