#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// blockIdx.x, read anew: what is derived from it is computed again as well, where the compiler
/// would otherwise keep it in registers from its first use to its last.
STROBE_DEVICE Word block_index_again() {
  Word index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

}  // namespace strobe::cuda::ptx
