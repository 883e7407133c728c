// Gradients of the softmax and of what goes before it.

#include "baselines/standard/rows.cuh"

namespace strobe::cuda {
namespace {

/// Probabilities, again, and their gradients after dropout.
struct Pair {
  Chunk p;
  Chunk dp;
};

struct Statistics {
  float maximum;
  float sum;
};

STROBE_DEVICE Pair pair_of(const Row& row, const Params& params, const Statistics& statistics,
                           int chunk) {
  Pair pair = {row.logits_of(row.of(params.scores, params), chunk),
               load_chunk(row.of(params.weights, params), chunk)};
  row.drop(pair.dp, chunk, params.dropout_scale);
#pragma unroll
  for (int e = 0; e < kChunkElements; ++e) {
    const bool hidden = pair.p.at[e] == minus_infinity();
    pair.p.at[e] = hidden ? 0.0F : expf(pair.p.at[e] - statistics.maximum) / statistics.sum;
    if (hidden) pair.dp.at[e] = 0;  // not what a value of infinity makes of it
  }
  return pair;
}

}  // namespace

/// dx = p (dp - Σ p dp), in the place of dp. The sink has no value, so its dp is 0.
extern "C" __global__ void __launch_bounds__(config::kThreads)
    softmax_gradient_rows(const __grid_constant__ Params params) {
  if (row_index() >= params.rows) return;
  const Row row(params, row_index());
  const Statistics statistics = {params.row_maxima[row.index], params.row_sums[row.index]};
  const bool sees = statistics.maximum != minus_infinity();

  float delta = 0;
  if (sees) {
    row.each_seen_chunk([&](int chunk) {
      const Pair pair = pair_of(row, params, statistics, chunk);
#pragma unroll
      for (int e = 0; e < kChunkElements; ++e) delta += pair.p.at[e] * pair.dp.at[e];
    });
  }
  delta = sum_over_team(delta);

  Row::each_chunk(params, [&](int chunk) {
    Chunk dx = {};
    if (sees) {
      const Pair pair = pair_of(row, params, statistics, chunk);
#pragma unroll
      for (int e = 0; e < kChunkElements; ++e) {
        dx.at[e] = pair.p.at[e] == 0.0F ? 0.0F : pair.p.at[e] * (pair.dp.at[e] - delta);
      }
    }
    store_chunk(row.of(params.weights, params), chunk, dx);
  });

  if constexpr (config::kSinks) {
    if (!leads_row()) return;
    const float p_sink =
        sees ? weight(params.sinks[row.head], statistics.maximum) / statistics.sum : 0.0F;
    params.sink_gradients[row.index] = sees ? -p_sink * delta : 0.0F;
  }
}

/// Through softcap c·tanh(x/c), whose derivative is 1 - tanh², in place.
extern "C" __global__ void __launch_bounds__(config::kThreads)
    softcap_gradient_rows(const __grid_constant__ Params params) {
  if (row_index() >= params.rows) return;
  const Row row(params, row_index());
  row.each_seen_chunk([&](int chunk) {
    const Chunk x = load_chunk(row.of(params.scores, params), chunk);
    Chunk dx = load_chunk(row.of(params.weights, params), chunk);
#pragma unroll
    for (int e = 0; e < kChunkElements; ++e) {
      const float bent = hyperbolic_tangent<kLogitFeatures.exact>(x.at[e] / params.softcap);
      // What is hidden has no gradient, even where the padding holds NaN.
      dx.at[e] = dx.at[e] == 0.0F ? 0.0F : dx.at[e] * (1.0F - bent * bent);
    }
    store_chunk(row.of(params.weights, params), chunk, dx);
  });
}

/// An element of dbias is a sum over what its axes do not tell apart. A block has some keys of one
/// row of dbias; blockIdx.x counts the rows, sequence outermost, and blockIdx.y the keys.
extern "C" __global__ void __launch_bounds__(config::kThreads)
    bias_gradients(const __grid_constant__ Params params) {
  const Wide key = static_cast<Wide>(blockIdx.y) * config::kThreads + threadIdx.x;
  if (key >= params.seqlen_k) return;
  const int own_queries = params.bias_per_query ? params.seqlen_q : 1;
  const int own_heads = params.bias_per_head ? params.heads : 1;
  const int query = static_cast<int>(blockIdx.x) % own_queries;
  const int head = static_cast<int>(blockIdx.x) / own_queries % own_heads;
  const int sequence = static_cast<int>(blockIdx.x) / own_queries / own_heads;
  const auto end = [](int own, int index, int size) { return own ? index + 1 : size; };

  const Storage* gradients = static_cast<const Storage*>(params.weights) + key;
  float sum = 0;
  for (int s = sequence; s < end(params.bias_per_sequence, sequence, params.sequences); ++s) {
    for (int h = head; h < end(params.bias_per_head, head, params.heads); ++h) {
      const Wide first = (static_cast<Wide>(s) * params.heads + h) * params.seqlen_q;
      for (int q = query; q < end(params.bias_per_query, query, params.seqlen_q); ++q) {
        sum += Element::widen(gradients[(first + q) * params.pitch]);
      }
    }
  }
  const RowStrides& strides = params.dbias_strides;
  static_cast<Storage*>(
      params.dbias)[sequence * strides.sequence + head * strides.head + query * strides.row + key] =
      Element::narrow(sum);
}

/// A block, which has one row of threads, for each head.
extern "C" __global__ void __launch_bounds__(config::kThreads)
    sink_gradients(const __grid_constant__ Params params) {
  __shared__ float parts[config::kThreads];
  const int head = static_cast<int>(blockIdx.x);
  const Wide count = static_cast<Wide>(params.sequences) * params.seqlen_q;
  float sum = 0;
  for (Wide i = threadIdx.x; i < count; i += config::kThreads) {
    const Wide sequence = i / params.seqlen_q;
    sum += params.sink_gradients[(sequence * params.heads + head) * params.seqlen_q +
                                 i % params.seqlen_q];
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = config::kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) params.dsinks[head] = parts[0];
}

}  // namespace strobe::cuda
