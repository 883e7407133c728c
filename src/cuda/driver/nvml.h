#pragma once

#include <string>

#include "core/shared_object.h"
#include "strobe/accelerator.h"

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

/// The clocks, power and temperature of one GPU, and how it is set up. Only reads.
class Sensors {
 public:
  /// Of the GPU at this place on the bus. Without NVML, or if it does not know the GPU, nothing is
  /// ever told.
  explicit Sensors(const std::string& pci_bus_id);

  DeviceState read() const;
  DeviceSettings read_settings() const;

 private:
  SharedObject library_;
  void* gpu_ = nullptr;  ///< NVML's handle
};

/// The reasons, in words, of a mask as NVML gives it. Being idle is none.
std::vector<std::string> clock_reasons(unsigned long long mask);

}  // namespace strobe::cuda::driver
