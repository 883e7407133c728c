#pragma once
// Barriers in shared memory, 8 bytes each. A phase is over when as many have arrived as were said
// at the beginning, and all bytes that were announced have come. From Hopper on.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// By one thread, before anyone else uses it.
STROBE_DEVICE void init_barrier(Word barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Shows barriers that this thread has initialised to the unit that copies tensors.
STROBE_DEVICE void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

STROBE_DEVICE void arrive(Word barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Also announces bytes that copies will bring in this phase.
STROBE_DEVICE void arrive_and_expect(Word barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Waits until a phase is over: the first has parity 0, the next 1, and so on in turns. The parity
/// before the first counts as over.
STROBE_DEVICE void wait_for_phase(Word barrier, Word parity) {
  // How long the hardware may park the thread before it looks again: it is woken anyway.
  constexpr int kNanoseconds = 1000000;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1, %2;\n"
      "@over bra.uni done;\n"
      "bra.uni again;\n"
      "done:\n"
      "}\n" ::"r"(barrier),
      "r"(parity), "r"(kNanoseconds)
      : "memory");
}

}  // namespace strobe::cuda::ptx
