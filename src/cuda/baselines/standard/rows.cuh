#pragma once
// What the row kernels share: a team of threads has a row and goes through it in chunks of 16
// bytes.

#include "baselines/standard/params.cuh"
#include "config.cuh"
#include "device/dropout.cuh"
#include "device/element.cuh"
#include "device/logits.cuh"
#include "device/mask.cuh"

namespace strobe::cuda {

using Params = StandardParams;
using Element = config::Element;
using Storage = Element::Storage;

constexpr int kChunkElements = 16 / static_cast<int>(sizeof(Storage));
constexpr int kRowsOfBlock = config::kThreads / config::kThreadsOfRow;
static_assert(config::kThreadsOfRow == 32 || kRowsOfBlock == 1, "a warp, or the whole block");

constexpr LogitFeatures kLogitFeatures = {config::kSoftcap, config::kBias, config::kAlibi,
                                          sizeof(Storage) == 4};

struct Chunk {
  float at[kChunkElements];
};

STROBE_DEVICE Chunk load_chunk(const void* row, int chunk) {
  union {
    uint4 whole;
    Storage element[kChunkElements];
  } piece;
  piece.whole = static_cast<const uint4*>(row)[chunk];
  Chunk values;
#pragma unroll
  for (int e = 0; e < kChunkElements; ++e) values.at[e] = Element::widen(piece.element[e]);
  return values;
}

STROBE_DEVICE void store_chunk(void* row, int chunk, const Chunk& values) {
  union {
    uint4 whole;
    Storage element[kChunkElements];
  } piece;
#pragma unroll
  for (int e = 0; e < kChunkElements; ++e) piece.element[e] = Element::narrow(values.at[e]);
  static_cast<uint4*>(row)[chunk] = piece.whole;
}

/// NaN if there is any.
STROBE_DEVICE float larger_or_nan(float a, float b) {
  return a > b || a != a ? a : b;
}

/// Of all threads of the row, in each of them.
template <class Combine>
STROBE_DEVICE float over_team(float x, Combine combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    x = combine(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  if constexpr (config::kThreadsOfRow > 32) {
    constexpr int kWarps = config::kThreadsOfRow / 32;
    __shared__ float parts[kWarps];
    __syncthreads();  // all have read what was there
    if (lane_index() == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) x = combine(x, parts[w]);
  }
  return x;
}

STROBE_DEVICE float sum_over_team(float x) {
  return over_team(x, [](float a, float b) { return a + b; });
}

/// One row of the matrices, that of a query of a head of a sequence.
struct Row {
  Wide index;
  int sequence;
  int head;
  int query;
  KeyRange keys;  ///< that the query sees
  Logits<kLogitFeatures, Element> logits;
  Dropout dropout;

  STROBE_DEVICE Row(const Params& params, Wide which)
      : index(which),
        sequence(static_cast<int>(which / params.seqlen_q / params.heads)),
        head(static_cast<int>(which / params.seqlen_q % params.heads)),
        query(static_cast<int>(which % params.seqlen_q)),
        keys(WindowMask<config::kWindowLeft, config::kWindowRight>{
            params.window_left, params.window_right, params.seqlen_q, params.seqlen_k}
                 .visible(query)),
        logits{1.0F, params.softcap, 0.0F, nullptr, 0, params.seqlen_q, params.seqlen_k},
        dropout{{params.dropout_seed[0], params.dropout_seed[1]},
                params.dropout_threshold,
                static_cast<Word>(head),
                static_cast<Word>(sequence)} {
    if constexpr (config::kAlibi) {
      logits.slope = params.alibi_slopes[sequence * params.alibi_sequence_stride + head];
    }
    if constexpr (config::kBias) {
      logits.bias = static_cast<const Storage*>(params.bias) +
                    sequence * params.bias_strides.sequence + head * params.bias_strides.head;
      logits.bias_stride = params.bias_strides.row;
    }
  }

  STROBE_DEVICE Storage* of(const void* matrix, const Params& params) const {
    return static_cast<Storage*>(const_cast<void*>(matrix)) + index * params.pitch;
  }

  /// The logits of a chunk; minus infinity for keys that the query does not see.
  STROBE_DEVICE Chunk logits_of(const Storage* scores, int chunk) const {
    Chunk x = load_chunk(scores, chunk);
#pragma unroll
    for (int e = 0; e < kChunkElements; ++e) {
      const Word key = static_cast<Word>(chunk * kChunkElements + e);
      x.at[e] = keys.contains(key) ? logits(x.at[e], query, key) : minus_infinity();
    }
    return x;
  }

  /// What dropout leaves of the elements of a chunk.
  STROBE_DEVICE void drop(Chunk& values, int chunk, float factor) const {
    if constexpr (config::kDropout) {
#pragma unroll
      for (int e = 0; e < kChunkElements; e += 4) {
        const Word kept = dropout.kept(static_cast<Word>(chunk * kChunkElements + e) / 4, query);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          values.at[e + i] = (kept >> i & 1) != 0 ? values.at[e + i] * factor : 0.0F;
        }
      }
    }
  }

  /// Calls body(chunk) for this thread's share of the chunks that hold keys the query sees.
  template <class Body>
  STROBE_DEVICE void each_seen_chunk(Body body) const {
    if (keys.begin >= keys.end) return;
    const int first = keys.begin / kChunkElements;
    const int end = (keys.end - 1) / kChunkElements + 1;
    for (int c = first + thread(); c < end; c += config::kThreadsOfRow) body(c);
  }

  /// Of all chunks of the row, padding included.
  template <class Body>
  STROBE_DEVICE static void each_chunk(const Params& params, Body body) {
    const int end = static_cast<int>(params.pitch / kChunkElements);
    for (int c = thread(); c < end; c += config::kThreadsOfRow) body(c);
  }

 private:
  STROBE_DEVICE static int thread() {
    return static_cast<int>(threadIdx.x) % config::kThreadsOfRow;
  }
};

/// The row of this thread's team.
STROBE_DEVICE Wide row_index() {
  return static_cast<Wide>(blockIdx.x) * kRowsOfBlock + threadIdx.x / config::kThreadsOfRow;
}

STROBE_DEVICE bool leads_row() {
  return threadIdx.x % config::kThreadsOfRow == 0;
}

/// What a logit weighs in a row with this maximum and sum. Minus infinity weighs nothing, whatever
/// the others are.
STROBE_DEVICE float weight(float logit, float maximum) {
  return logit == minus_infinity() ? 0.0F : expf(logit - maximum);
}

}  // namespace strobe::cuda
