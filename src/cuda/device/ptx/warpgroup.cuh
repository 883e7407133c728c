#pragma once
// What the warps of a block agree on in groups: registers and barriers. From Hopper on.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Gives registers of a thread back to the block, down to so many. By all of a warpgroup.
template <int kRegisters>
STROBE_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Takes registers that were given back, up to so many; waits for ever if the block was not
/// launched with as many.
template <int kRegisters>
STROBE_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Barriers 1 to 15 of a block, for whole warps. `threads` counts those that wait and those that
/// only arrive; 0 is that of __syncthreads.
STROBE_DEVICE void sync_threads(int barrier, int threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

STROBE_DEVICE void arrive_threads(int barrier, int threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Waits as well, and tells whether it is true in any of the threads.
STROBE_DEVICE bool any_of_threads(int barrier, int threads, bool mine) {
  int any;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.b32 p, %3, 0;\n"
      "barrier.cta.red.or.aligned.pred q, %1, %2, p;\n"
      "selp.b32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(any)
      : "r"(barrier), "r"(threads), "r"(mine ? 1 : 0)
      : "memory");
  return any != 0;
}

}  // namespace strobe::cuda::ptx
