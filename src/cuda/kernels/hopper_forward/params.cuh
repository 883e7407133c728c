#pragma once
// What a launch of the kernel is told besides the tensor maps; read by the host's compiler and by
// NVRTC.

#include "device/row_strides.cuh"

namespace strobe::cuda {

struct HopperForwardParams {
  const void* q;  ///< these four for rows that must be computed again, see HiddenValues
  const void* k;
  const void* v;
  void* out;
  float* lse;           ///< or null
  unsigned* next_tile;  ///< 0 before the launch, where tiles are handed out as blocks ask for them

  RowStrides q_strides;
  RowStrides k_strides;
  RowStrides v_strides;
  RowStrides out_strides;
  RowStrides lse_strides;

  long long window_left;   ///< where it is limited, and then at most 2³²
  long long window_right;  ///< likewise; 0 if causal

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;
  int seqlen_k;
  int query_blocks;       ///< of a sequence
  int heads_per_section;  ///< see Schedule
  int tiles;

  float scale;
  float unit;  ///< scale · log₂ e
};

}  // namespace strobe::cuda
