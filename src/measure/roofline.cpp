#include "measure/roofline.h"

#include <algorithm>

#include "measure/flops.h"

namespace strobe::lab {

double Roofline::flops_per_second() const {
  return std::min(peak_flops, intensity * bytes_per_second);
}

Roofline roofline(const Problem& problem, const Peaks& peaks, Cache cache) {
  const Footprint operands = footprint(problem);
  const std::int64_t bytes = operands.inputs + operands.outputs;
  const auto peak = peaks.flops_per_second.find(problem.dtype);
  return {.peak_flops = peak == peaks.flops_per_second.end() ? 0 : peak->second,
          .bytes_per_second = cache == Cache::warm ? peaks.bytes_per_second_within(bytes)
                                                   : peaks.memory_bytes_per_second(),
          .intensity = bytes > 0 ? flops(problem) / static_cast<double>(bytes) : 0};
}

Roofline roofline(const Benchmark& result, const Peaks& peaks) {
  if (result.device != peaks.device) return {};
  Roofline roof = roofline(result.problem, peaks, result.cache());
  const bool tf32 = result.options.tf32 && result.problem.dtype == DType::fp32;
  if (tf32 && result.device.kind != Device::Kind::cpu) {
    roof.peak_flops = peaks.tf32_flops_per_second;
  }
  return roof;
}

}  // namespace strobe::lab
