// Probabilities from scores, a row at a time: the maximum, the sum, then every element.

#include "baselines/standard/rows.cuh"

namespace strobe::cuda {

extern "C" __global__ void __launch_bounds__(config::kThreads)
    softmax_rows(const __grid_constant__ Params params) {
  if (row_index() >= params.rows) return;
  const Row row(params, row_index());
  const Storage* scores = row.of(params.scores, params);

  float maximum = minus_infinity();
  row.each_seen_chunk([&](int chunk) {
    const Chunk x = row.logits_of(scores, chunk);
#pragma unroll
    for (int e = 0; e < kChunkElements; ++e) maximum = larger_or_nan(maximum, x.at[e]);
  });
  maximum = over_team(maximum, larger_or_nan);
  const bool sees = maximum != minus_infinity();
  float sink = minus_infinity();
  if constexpr (config::kSinks) {
    sink = params.sinks[row.head];
    if (sees) maximum = larger_or_nan(maximum, sink);
  }

  float sum = 0;
  if (sees) {
    row.each_seen_chunk([&](int chunk) {
      const Chunk x = row.logits_of(scores, chunk);
#pragma unroll
      for (int e = 0; e < kChunkElements; ++e) sum += weight(x.at[e], maximum);
    });
  }
  sum = sum_over_team(sum);
  if (config::kSinks && sees) sum += weight(sink, maximum);

  // The last to read an element also writes it, for the result may take the place of the scores.
  Storage* weights = row.of(params.weights, params);
  Row::each_chunk(params, [&](int chunk) {
    Chunk p = {};
    if (sees) {
      p = row.logits_of(scores, chunk);
#pragma unroll
      for (int e = 0; e < kChunkElements; ++e) {
        p.at[e] = p.at[e] == minus_infinity() ? 0.0F : expf(p.at[e] - maximum) / sum;
      }
      row.drop(p, chunk, params.dropout_scale);
    }
    store_chunk(weights, chunk, p);
  });

  if (!leads_row()) return;
  if (params.lse != nullptr) {
    const RowStrides& strides = params.lse_strides;
    params
        .lse[row.sequence * strides.sequence + row.head * strides.head + row.query * strides.row] =
        sees ? maximum + logf(sum) : minus_infinity();
  }
  if (params.row_maxima != nullptr) {
    params.row_maxima[row.index] = maximum;
    params.row_sums[row.index] = sum;
  }
}

}  // namespace strobe::cuda
