#pragma once

#include "measure/benchmark.h"
#include "measure/peaks.h"
#include "measure/sampler.h"
#include "strobe/problem.h"

namespace strobe::lab {

/// The most that a machine with these peaks can do on a problem whose every operand is read or
/// written once.
struct Roofline {
  double peak_flops = 0;        ///< per second: the ceiling
  double bytes_per_second = 0;  ///< the slope, from where the operands lie
  double intensity = 0;         ///< FLOPs for each byte of the operands

  double flops_per_second() const;
  bool memory_bound() const { return intensity * bytes_per_second < peak_flops; }
};

/// From warm caches the operands come as fast as a working set of their size is copied, from cold
/// ones at the rate of the memory.
Roofline roofline(const Problem& problem, const Peaks& peaks, Cache cache);

/// Of a result that was measured on the device with these peaks; nothing of another's.
Roofline roofline(const Benchmark& result, const Peaks& peaks);

}  // namespace strobe::lab
