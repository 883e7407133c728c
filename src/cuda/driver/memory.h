#pragma once

#include <cstddef>

#include "cuda/driver/owned.h"

namespace strobe::cuda::driver {

/// Memory of a GPU, aligned to 256 bytes.
class DeviceMemory {
 public:
  DeviceMemory() = default;

  /// Throws OutOfMemory saying how much was asked for and how much there is.
  DeviceMemory(const Device& device, std::size_t bytes);

  void* data() const { return pointer_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  static void release(const Api& driver, abi::DevicePointer pointer) {
    driver.cuMemFree.unchecked(pointer);
  }

  Owned<abi::DevicePointer, release> pointer_{};
  std::size_t bytes_ = 0;
};

/// Between any two of host and devices; the addresses say which. Ordered on the stream: pageable
/// memory of the host may be read before this returns.
void copy_async(void* to, const void* from, std::size_t bytes, abi::Stream stream);

/// Sets every byte, ordered on the stream.
void fill_async(void* data, unsigned char byte, std::size_t bytes, abi::Stream stream);

/// What the device has left.
std::size_t free_memory(const Device& device);

}  // namespace strobe::cuda::driver
