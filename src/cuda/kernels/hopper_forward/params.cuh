#pragma once
// What a launch of the kernel is told besides the tensor maps; read by the host's compiler and by
// NVRTC.

#include "device/row_strides.cuh"

namespace strobe::cuda {

/// Where the tiles of a packed sequence begin, in the order in which they are handed out.
struct SequenceTiles {
  unsigned first;
  int sequence;
};

/// What puts sequences in that order is told.
struct HopperOrderParams {
  const int* cu_seqlens_q;
  const int* cu_seqlens_k;
  SequenceTiles* order;  ///< [sequences + 1]; the last one's tiles begin where there are no more
  unsigned* next_tile;   ///< becomes 0
  int sequences;
  int heads;
  int block_queries;
};

struct HopperForwardParams {
  const void* q;  ///< these four for rows that must be computed again, see HiddenValues
  const void* k;
  const void* v;
  void* out;
  float* lse;           ///< or null
  unsigned* next_tile;  ///< 0 before the launch, where tiles are handed out as blocks ask for them
  const int* cu_seqlens_q;     ///< [sequences + 1], with variable lengths
  const int* cu_seqlens_k;     ///< likewise
  const SequenceTiles* order;  ///< likewise
  const float* sinks;          ///< [heads], with sinks
  const float* alibi_slopes;   ///< [heads], with ALiBi
  const void* bias;            ///< with a bias

  RowStrides q_strides;
  RowStrides k_strides;
  RowStrides v_strides;
  RowStrides out_strides;
  RowStrides lse_strides;
  RowStrides bias_strides;  ///< rows are queries; 0 where an axis is broadcast

  long long alibi_sequence_stride;

  int window_left;   ///< where it is limited, and then at most 2³⁰
  int window_right;  ///< likewise; 0 if causal

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;           ///< with variable lengths not used
  int seqlen_k;           ///< likewise
  int query_blocks;       ///< of a sequence, likewise
  int heads_per_section;  ///< see Schedule
  int tiles;              ///< with variable lengths at most so many
  int paired_tiles;       ///< of these, see PairedTiles

  float scale;
  float unit;  ///< log₂ e, and the scale where no logits are made
  float softcap;

  float dropout_scale;         ///< 1 / (1 - p)
  unsigned dropout_threshold;  ///< random words below are dropped
  unsigned dropout_seed[2];    ///< low word, high word
};

}  // namespace strobe::cuda
