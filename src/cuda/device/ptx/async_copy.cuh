#pragma once
// Copies from global to shared memory that a thread starts and later waits for.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// 16 bytes, past the first level cache; zeros, and nothing is read, if not `valid`.
STROBE_DEVICE void copy_chunk_async(Word to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}

/// Ends a group of copies; groups arrive in order.
STROBE_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until all but the last `kPending` groups of this thread have arrived.
template <int kPending>
STROBE_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Waits for all copies of this thread, also those after the last group.
STROBE_DEVICE void wait_for_all_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace strobe::cuda::ptx
