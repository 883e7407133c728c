#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// One sequence of the batch: its lengths, and its first row where sequences are packed.
struct Sequence {
  int index;
  int first_q;
  int first_k;
  int length_q;
  int length_k;
};

/// Lengths come from the offsets where these vary, since a plan serves other lengths than those it
/// was made for.
template <bool variable_length, class Params>
STROBE_DEVICE Sequence sequence_at(const Params& params, int index) {
  if constexpr (variable_length) {
    const int first_q = params.cu_seqlens_q[index];
    const int first_k = params.cu_seqlens_k[index];
    return {index, first_q, first_k, params.cu_seqlens_q[index + 1] - first_q,
            params.cu_seqlens_k[index + 1] - first_k};
  } else {
    return {index, 0, 0, params.seqlen_q, params.seqlen_k};
  }
}

}  // namespace strobe::cuda
