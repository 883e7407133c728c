#pragma once

#include "cuda/driver/module.h"

namespace strobe::cuda::driver {

/// How a kernel is spread over the device.
struct LaunchShape {
  abi::Extent grid{};
  abi::Extent block{};
  abi::Extent cluster{};  ///< in blocks; from compute capability 9.0
  int dynamic_shared_bytes = 0;
  /// The kernel may start before the one ahead of it in the stream has ended, and waits for its
  /// results itself; from compute capability 9.0.
  bool overlaps_previous = false;
};

/// Whether kernels may be launched so: graphs know of it since CUDA 12.3.
bool kernels_may_overlap();

/// `parameters` points to the address of each of the kernel's parameters. Ordered on the stream,
/// whose context must be current.
void launch_with(const Function& function, const LaunchShape& shape, abi::Stream stream,
                 void** parameters);

/// The kernel's parameters must be of exactly these types.
template <class... Parameters>
void launch(const Function& function, const LaunchShape& shape, abi::Stream stream,
            const Parameters&... parameters) {
  const void* addresses[] = {&parameters...};
  launch_with(function, shape, stream, const_cast<void**>(addresses));
}

}  // namespace strobe::cuda::driver
