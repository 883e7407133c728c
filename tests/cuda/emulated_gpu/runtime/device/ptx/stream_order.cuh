#pragma once

namespace strobe::cuda::ptx {

// Kernels run one after the other.
inline void let_next_kernel_start() {}
inline void wait_for_kernel_before() {}

}  // namespace strobe::cuda::ptx
