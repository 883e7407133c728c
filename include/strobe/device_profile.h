#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

// What a device with memory of its own tells of the work that it did: when, and what it counted.
namespace strobe {

/// How a kernel was launched, and what it takes.
struct KernelLaunch {
  std::array<int, 3> grid{}, block{};
  int registers = 0;                                               ///< of a thread
  std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;  ///< of a block
  std::int64_t local_bytes = 0;  ///< of a thread: registers that were spilled, arrays
};

/// One thing that a device did on one of its streams.
struct DeviceWork {
  enum class Kind : std::uint8_t { kernel, copy, fill };

  Kind kind = Kind::kernel;
  std::string name{};                     ///< the kernel's, or "copy to the device"
  std::int64_t stream = 0;                ///< a number that is the same for what shares a stream
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock, as spans are
  KernelLaunch launch{};                  ///< of a kernel
  std::int64_t bytes = 0;                 ///< of a copy or fill
};

/// What a device did while it was watched, in the order in which it began.
struct DeviceActivity {
  std::string device{};  ///< "GPU 0, NVIDIA H200"
  std::vector<DeviceWork> work{};
  std::int64_t dropped = 0;  ///< for which there was no room
  std::string refused{};     ///< a sentence that says why nothing was told, and what to do
};

/// One launch of a kernel, and what was counted while it ran.
struct CountedKernel {
  std::string name{};
  KernelLaunch launch{};
  std::vector<double> values{};  ///< as many as metrics; NaN where there is none
};

/// What a device counted of every kernel of a call.
struct DeviceCounts {
  std::vector<std::string> metrics{};    ///< by their names in NVIDIA's tools
  std::vector<std::string> unknown{};    ///< that were asked for, and that the device does not have
  std::vector<CountedKernel> kernels{};  ///< in the order of their launches
  int passes = 0;                        ///< calls that it took to count everything
  std::string refused{};  ///< a sentence that says why nothing was counted, and what to do
};

}  // namespace strobe
