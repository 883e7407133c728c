#pragma once

#include <string>

namespace strobe::cuda::driver {

/// NVIDIA's management library: what it is, or a sentence that says why it is not there. Nothing is
/// computed with it; it knows clocks, power and temperature.
struct Nvml {
  std::string path{};
  std::string version{};         ///< its own, "13.580.159.04"
  std::string driver_version{};  ///< of the kernel driver, "580.159.04"
  std::string missing{};
};

/// Loads libnvidia-ml.so.1, or what STROBE_NVML names.
Nvml load_nvml();

}  // namespace strobe::cuda::driver
