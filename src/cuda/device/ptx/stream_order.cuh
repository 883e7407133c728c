#pragma once
// How a kernel stands to those before and after it in its stream, from Hopper on.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Lets the next kernel start where there is room for it, once all blocks of this one have come
/// here, if it was launched for that (see LaunchShape). It waits for this one's results itself.
STROBE_DEVICE void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the kernel before has ended. What it wrote is then seen by this whole kernel. Waits
/// for nothing if that one had ended before this one was started, as usual.
STROBE_DEVICE void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace strobe::cuda::ptx
