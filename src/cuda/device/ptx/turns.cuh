#pragma once
// Turns that thread blocks take, counted in global memory.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Waits until the count has come to `turn`. What others had done before is seen from then on, also
/// by the unit that copies and adds. They must be running, or have been.
STROBE_DEVICE void wait_for_turn(const unsigned* count, unsigned turn) {
  unsigned now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
  } while (now != turn);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// Counts on, once all that this thread has done can be seen; copies must have been waited for.
STROBE_DEVICE void pass_turn(unsigned* count) {
  asm volatile("fence.proxy.async.global;" ::: "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}

/// Counts on and tells how many had before. All that threads of the block had done before they met
/// this one can be seen by whoever takes a later turn, and likewise what those before had done.
STROBE_DEVICE unsigned take_turn(unsigned* count) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(count)
               : "memory");
  return before;
}

/// Shows what the unit has written for this thread, which has waited for it, to threads that are
/// told of it.
STROBE_DEVICE void show_stores() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace strobe::cuda::ptx
