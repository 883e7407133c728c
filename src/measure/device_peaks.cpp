#include <algorithm>

#include "measure/peaks.h"
#include "strobe/accelerator.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

/// Bytes read and written in a second by copies far larger than the cache.
Peaks::CopyRate measure_copy(const Accelerator& device) {
  constexpr std::int64_t kBytes = 1 << 30;
  constexpr int kTries = 5;
  const auto bytes = static_cast<std::size_t>(std::min(kBytes, device.free_bytes() / 4));
  if (static_cast<std::int64_t>(bytes) < 4 * device.cache_bytes()) {
    throw OutOfMemory("too little is free for a copy that its cache does not hold");
  }
  const auto from = device.allocate(bytes);
  const auto to = device.allocate(bytes);
  device.fill(from.get(), std::byte{1}, bytes);
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double ms = device.time_ms([&] { device.upload(to.get(), from.get(), bytes); });
    if (ms > 0) best = std::max(best, 2 * static_cast<double>(bytes) / ms * 1e3);
  }
  return {static_cast<std::int64_t>(bytes), best};
}

}  // namespace

Peaks measure_device_peaks(Device device) {
  Peaks peaks{.device = device};
  try {
    const Accelerator& gpu = accelerator(device);
    for (const MultiplyRate& rate : gpu.multiply_rates()) {
      peaks.add(rate);
      if (rate.dtype != DType::bf16) continue;
      MultiplyRate half = rate;  // every GPU has the same instruction for it, as fast
      half.dtype = DType::fp16;
      peaks.add(half);
    }
    peaks.copy.push_back(measure_copy(gpu));
  } catch (const InvalidArgument&) {
    throw;
  } catch (const Error&) {  // no compiler, no memory: results go without a roofline
    return {.device = device};
  }
  return peaks;
}

}  // namespace strobe::lab
