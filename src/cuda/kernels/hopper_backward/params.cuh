#pragma once
// What a launch of the kernel is told besides the tensor maps; read by the host's compiler and by
// NVRTC.

#include "kernels/portable_backward/params.cuh"

namespace strobe::cuda {

struct HopperBackwardParams {
  const RowStatistics* statistics;  ///< as PortableBackwardParams has them
  float* dq_sums;        ///< [sequences, heads, query_blocks, see query_slices.cuh], zero
  unsigned* turns;       ///< [sequences, heads, query_blocks, writers], zero
  unsigned* not_finite;  ///< becomes 1 if any of dk or dv is not

  long long rows;  ///< of the statistics of a head

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;
  int seqlen_k;
  int query_blocks;  ///< of a sequence
  int key_blocks;    ///< likewise

  float scale;
  float unit;  ///< scale · log₂ e
};

}  // namespace strobe::cuda
