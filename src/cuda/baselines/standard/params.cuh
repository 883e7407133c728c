#pragma once
// What a launch of the row kernels is told; read by the host's compiler and by NVRTC.

#include "device/row_strides.cuh"

namespace strobe::cuda {

/// Matrices are [batch, heads, seqlen_q] rows of `pitch` elements, a multiple of 16 bytes, of which
/// seqlen_k are keys. Arrays of rows are fp32.
struct StandardParams {
  const void* scores;  ///< scaled
  void* weights;       ///< probabilities; or their gradients, which become those of the logits
  float* lse;          ///< or null
  float* row_maxima;   ///< with the next written by the forward pass if not null
  float* row_sums;
  float* sink_gradients;  ///< of rows, with sinks
  const void* bias;
  const float* sinks;         ///< [heads]
  const float* alibi_slopes;  ///< [heads]
  void* dbias;
  float* dsinks;  ///< [heads]

  RowStrides lse_strides;
  RowStrides bias_strides;  ///< rows are queries; 0 where an axis is broadcast
  RowStrides dbias_strides;
  long long alibi_sequence_stride;

  long long window_left;  ///< where it is limited, and then at most 2³²
  long long window_right;

  long long rows;
  long long pitch;
  int sequences;
  int heads;
  int seqlen_q;
  int seqlen_k;
  int bias_per_sequence;  ///< whether the bias has the axis; otherwise gradients are summed over it
  int bias_per_head;
  int bias_per_query;

  float softcap;
  float dropout_scale;         ///< 1 / (1 - p)
  unsigned dropout_threshold;  ///< random words below are dropped
  unsigned dropout_seed[2];    ///< low word, high word
};

}  // namespace strobe::cuda
