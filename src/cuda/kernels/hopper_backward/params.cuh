#pragma once
// What a launch of the kernel is told besides the tensor maps; read by the host's compiler and by
// NVRTC.

#include "kernels/portable_backward/params.cuh"

namespace strobe::cuda {

struct HopperBackwardParams {
  const RowStatistics* statistics;  ///< as PortableBackwardParams has them
  float* dq_sums;           ///< [sequences, heads, query_blocks, see query_slices.cuh], zero; of
                            ///< the first section alone where blocks clear those of the next
  unsigned* turns;          ///< [sequences, heads, query_blocks, kTileWriters], zero
  unsigned* cleared;        ///< [sequences, key heads], zero: blocks that have cleared their share
  unsigned* added;          ///< likewise, that have added all of theirs
  unsigned* not_finite;     ///< becomes 1 if any gradient is not
  const int* cu_seqlens_q;  ///< [sequences + 1], with variable lengths
  const int* cu_seqlens_k;  ///< likewise
  const float* alibi_slopes;  ///< [heads], with ALiBi
  void* dk;                   ///< these two for rows that cannot be stored in boxes
  void* dv;
  void* dq;  ///< where sums are converted

  RowStrides dq_strides;
  RowStrides dk_strides;
  RowStrides dv_strides;
  RowStrides bias_strides;  ///< 0 where an axis is broadcast
  long long alibi_sequence_stride;

  long long rows;          ///< of the statistics of a head
  long long window_left;   ///< where it is limited, and then at most 2³⁰
  long long window_right;  ///< likewise; 0 if causal

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;      ///< with variable lengths not used
  int seqlen_k;      ///< likewise
  int query_blocks;  ///< of a sequence; with variable lengths of all, which are then as one: see
                     ///< PackedBlocks
  int key_blocks;    ///< likewise
  int heads_of_section;  ///< see there

  float scale;
  float unit;          ///< scale · log₂ e
  float scale_by_cap;  ///< scale / cap, with a softcap
  float cap_unit;      ///< cap · log₂ e, likewise

  float dropout_scale;         ///< 1 / (1 - p)
  unsigned dropout_threshold;  ///< random words below are dropped
  unsigned dropout_seed[2];    ///< low word, high word
};

}  // namespace strobe::cuda
