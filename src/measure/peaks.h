#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "strobe/accelerator.h"

namespace strobe::lab {

/// What this machine, or a GPU of it, can do at most, as far as it could be measured: the walls and
/// the ceiling of the roofline.
struct Peaks {
  /// Bytes moved per second while each thread works on `bytes_per_thread`.
  struct CopyRate {
    std::int64_t bytes_per_thread = 0;
    double bytes_per_second = 0;
  };

  /// Operations per second of one way to multiply and add, by its name.
  struct InstructionRate {
    std::string name{};
    DType dtype = DType::fp32;
    double per_second = 0;
  };

  Device device{};
  int threads = 0;
  std::map<DType, double> flops_per_second{};   ///< multiply-adds in registers, two each
  double tf32_flops_per_second = 0;             ///< of fp32 that GPUs round to TF32
  std::vector<InstructionRate> instructions{};  ///< what those are the best of
  std::vector<CopyRate> copy{};                 ///< from the fastest cache out to memory

  double memory_bytes_per_second() const { return copy.empty() ? 0 : copy.back().bytes_per_second; }

  /// Takes note of a rate of a GPU's.
  void add(const MultiplyRate& rate);

  /// Raises every rate to that of `other`, measured in the same way, where that is higher.
  void raise_to(const Peaks& other);

  /// For a working set of `bytes` in all: that of the smallest measured one that holds it.
  double bytes_per_second_within(std::int64_t bytes) const;
};

/// Takes about three seconds. The best of several tries each: a busy moment must not lower the
/// roof and so flatter the results.
Peaks measure_peaks(int threads = 0);

/// The peaks of this machine, for this many threads (0: all cores) and the kernels in use: those in
/// the cache file if it has them, else measured and kept there. `anew` measures in any case, and
/// keeps the better of what was known and what was found: a machine does not get slower for good.
Peaks machine_peaks(int threads = 0, bool anew = false);

/// Likewise those of a GPU. What cannot be measured, without a compiler for instance, is not there.
Peaks measure_device_peaks(Device device);

/// Those of the machine, with so many threads, or of a GPU: kept in the same way.
Peaks peaks_of(Device device, int threads = 0, bool anew = false);

/// Where peaks are kept: STROBE_CACHE_DIR, or strobe/ in XDG_CACHE_HOME or ~/.cache.
std::string peaks_cache_path();

}  // namespace strobe::lab
