#pragma once

#include "cuda/kernels/hopper_backward/config.h"
#include "cuda/kernels/portable_backward/config.h"

// The kernel that makes dq of its sums, after the main one.
namespace strobe::cuda::hopper_backward {

inline constexpr int kFinishThreads = 128;

/// 64 rows of dq.
inline int finish_shared_bytes(const HopperBackwardConfig& config) {
  return 64 * tile_row_bytes(key_columns(config.features));
}

/// finish.cu is compiled as portable_backward's rows are, but for what a thread block has.
inline jit::KernelDescription finish_description(const PortableBackwardConfig& rows,
                                                 const HopperBackwardConfig& config) {
  jit::KernelDescription kernel = description(rows, "rows", {"hopper_finish"});
  kernel.name = "hopper_backward/finish";
  kernel.source = "kernels/hopper_backward/finish.cu";
  kernel.constants.push_back({"kTileQueries", config.shape.block_queries});
  kernel.constants.push_back({"kTileColumns", key_columns(config.features)});
  kernel.constants.push_back({"kShifted", config.features.shifted});
  kernel.constants.push_back({"kIsFinished", config.features.finishes});
  kernel.threads = kFinishThreads;
  kernel.dynamic_shared_bytes = finish_shared_bytes(config);
  kernel.max_registers = registers_of_a_thread(kFinishThreads, 1);
  return kernel;
}

}  // namespace strobe::cuda::hopper_backward
