#pragma once
// What a launch of any kernel of the backward pass is told; read by the host's compiler and NVRTC.

#include "device/row_strides.cuh"

namespace strobe::cuda {

/// What is needed of a query besides its row: 2^(unit · logit - base) is a probability, and delta
/// is dout · out. A row that sees nothing has a base of infinity, so that its probabilities are 0.
struct RowStatistics {
  float base;
  float delta;
};

/// If kAligned, rows of operands begin at multiples of 16 bytes and are read in chunks of 16. Where
/// a dim is no whole number of chunks, an operand is a copy with zeros behind its rows, or is read
/// by elements.
///
/// The workspace has a row for each query of the batch, head by head: `rows` of them each, dense
/// sequences one after the other.
struct PortableBackwardParams {
  const void* q;
  const void* k;
  const void* v;
  const void* out;
  const void* dout;
  const float* lse;
  const void* bias;           ///< with a bias
  const float* sinks;         ///< [heads], with sinks
  const float* alibi_slopes;  ///< [heads], with ALiBi
  const int* cu_seqlens_q;    ///< [sequences + 1], with variable lengths
  const int* cu_seqlens_k;
  void* dq;
  void* dk;
  void* dv;
  void* dbias;    ///< or null
  float* dsinks;  ///< [heads], or null

  RowStatistics* statistics;  ///< workspace [heads, rows]
  float* corrections;         ///< workspace [heads, rows], with exact fp32: see exact_statistics.cu
  float* dq_sums;  ///< workspace [heads, rows, see query_sums.cuh]; null if deterministic

  float* cleared;            ///< what becomes zero with the statistics: sums, if there are any
  long long cleared_floats;  ///< a multiple of 4

  RowStrides q_strides;
  RowStrides k_strides;
  RowStrides v_strides;
  RowStrides out_strides;
  RowStrides dout_strides;
  RowStrides lse_strides;
  RowStrides bias_strides;  ///< rows are queries; 0 where an axis is broadcast
  RowStrides dq_strides;
  RowStrides dk_strides;
  RowStrides dv_strides;
  RowStrides dbias_strides;  ///< as bias_strides
  long long alibi_sequence_stride;

  long long rows;          ///< of the workspace: sequences · seqlen_q, or the total of all lengths
  long long window_left;   ///< where it is limited, and then at most 2³²
  long long window_right;  ///< likewise; 0 if causal

  int sequences;
  int heads;
  int heads_per_key_head;
  int seqlen_q;           ///< of the longest sequence
  int seqlen_k;           ///< likewise
  int blocks;             ///< of what a thread block of this kernel owns, in the longest sequence
  int heads_per_section;  ///< see Schedule
  int dq_aligned;         ///< whether all rows begin at multiples of 16 bytes
  int dk_aligned;
  int dv_aligned;
  int bias_per_sequence;  ///< whether the bias has the axis, or one serves all
  int bias_per_head;
  int bias_per_query;

  float scale;
  float softcap;
  float dropout_scale;         ///< 1 / (1 - p)
  unsigned dropout_threshold;  ///< random words below are dropped
  unsigned dropout_seed[2];    ///< low word, high word
};

}  // namespace strobe::cuda
