#pragma once
// Thread blocks that run beside each other and reach each other's shared memory, from Hopper on.
// Addresses there are those of the same thing in one's own.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Waits for all threads of all blocks that have not ended. What they did before is seen after.
STROBE_DEVICE void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

STROBE_DEVICE Word address_in_block(Word address, int block) {
  Word there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}

/// At a barrier of another block.
STROBE_DEVICE void arrive_in_block(Word barrier, int block) {
  asm volatile(
      "mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_in_block(barrier, block))
      : "memory");
}

/// Starts to copy to another block, whose barrier the bytes count on. Both begin at multiples of
/// 16 bytes, and there are a multiple of 16.
STROBE_DEVICE void copy_to_block(Word to, int block, Word from, int bytes, Word barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(address_in_block(to, block)),
      "r"(from), "r"(bytes), "r"(address_in_block(barrier, block))
      : "memory");
}

}  // namespace strobe::cuda::ptx
