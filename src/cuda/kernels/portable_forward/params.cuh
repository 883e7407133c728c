#pragma once
// What a launch of the kernel is told; read by the host's compiler and by NVRTC.

#include "device/row_strides.cuh"

namespace strobe::cuda {

/// If kAligned, rows of operands begin at multiples of 16 bytes and are read in chunks of 16. Where
/// a dim is no whole number of chunks, an operand is a copy with zeros behind its rows, or is read
/// by elements.
struct PortableForwardParams {
  const void* q;
  const void* k;
  const void* v;
  void* out;
  float* lse;                 ///< or null
  const void* bias;           ///< with a bias
  const float* sinks;         ///< [heads], with sinks
  const float* alibi_slopes;  ///< [heads], with ALiBi
  const int* cu_seqlens_q;    ///< [sequences + 1], with variable lengths
  const int* cu_seqlens_k;

  RowStrides q_strides;
  RowStrides k_strides;
  RowStrides v_strides;
  RowStrides out_strides;
  RowStrides lse_strides;
  RowStrides bias_strides;  ///< rows are queries; 0 where an axis is broadcast
  long long alibi_sequence_stride;

  long long window_left;   ///< where it is limited, and then at most 2³²
  long long window_right;  ///< likewise; 0 if causal

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;           ///< with variable lengths not used
  int seqlen_k;           ///< likewise
  int query_blocks;       ///< of the longest sequence
  int heads_per_section;  ///< see Schedule
  int out_aligned;        ///< whether all rows of the output begin at multiples of 16 bytes

  float scale;
  float softcap;
  float dropout_scale;         ///< 1 / (1 - p)
  unsigned dropout_threshold;  ///< random words below are dropped
  unsigned dropout_seed[2];    ///< low word, high word
};

}  // namespace strobe::cuda
