// Statistics of short rows, more exact than those that come from the forward pass. Its output and
// its LSE are rounded. That is not small beside what the unfused computation gets wrong where a row
// sees few keys, nor ever in exact fp32. So sums are taken over the very probabilities and
// gradients that the kernels after this one compute:
//     delta = Σ p·dp / Σp        correction = 1 / Σp - 1        where a sink's p is part of Σp

#include "kernels/portable_backward/query_block.cuh"

namespace strobe::cuda {
namespace {

/// In double, for delta must be dp itself where a row sees a single key.
struct RowSums {
  double weights;
  double dots;
};

STROBE_DEVICE double over_row(double x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

STROBE_DEVICE void add(RowSums (&sums)[Scores::kRows], Scores& p, Scores& dp) {
#pragma unroll
  for (int r = 0; r < Scores::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums[r].weights += p.at(r, c, i);
        sums[r].dots += static_cast<double>(p.at(r, c, i)) * dp.at(r, c, i);
      }
    }
  }
}

/// One row, from the sums of the warps that share it.
STROBE_DEVICE void store(const Params& params, const QueryBlock& block, int row, RowSums sums) {
  const Wide place = workspace_row(params, block.sequence(), block.head()) + block.first() + row;
  RowStatistics& statistics = params.statistics[place];
  if (params.sinks != nullptr) {
    const float sink = params.sinks[block.head()];
    sums.weights += sink_probability(sink, statistics.base);
  }
  const bool sees_nothing = statistics.base == -minus_infinity();
  statistics.delta = sees_nothing ? 0.0F : static_cast<float>(sums.dots / sums.weights);
  if constexpr (kExact) {
    params.corrections[place] =
        sees_nothing ? 0.0F : static_cast<float>((1.0 - sums.weights) / sums.weights);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, config::kBlocksPerMultiprocessor)
    portable_exact_statistics(const __grid_constant__ Params params) {
  extern __shared__ uint4 shared[];
  const QueryBlock block(params, ptx::shared_address(shared));
  if (block.rows() == 0) return;
  const Blocks seen = block.blocks();
  if (seen.end - seen.begin > config::kShortRow / config::kBlockKeys) return;

  RowSums sums[Scores::kRows] = {};
  block.for_each_block<Gradient::probabilities>(
      [&](Scores& probabilities, Scores& gradients) { add(sums, probabilities, gradients); },
      [](Word) {});

  auto* warps_sums = reinterpret_cast<RowSums*>(shared);  // [kScoreKeyWarps][kBlockQueries]
  static_assert(kScoreKeyWarps * config::kBlockQueries * sizeof(RowSums) <=
                config::kDynamicSharedBytes);
  if (warp_index() < kScoreWarps) {
    const int first = warp_index() % kScoreKeyWarps * config::kBlockQueries +
                      warp_index() / kScoreKeyWarps * kScoreQueries;
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const RowSums row = {over_row(sums[r].weights), over_row(sums[r].dots)};
      if (lane_index() % 4 == 0) warps_sums[first + Scores::row_index(r)] = row;
    }
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < block.rows(); row += kThreads) {
    RowSums total = {0, 0};
#pragma unroll
    for (int w = 0; w < kScoreKeyWarps; ++w) {
      total.weights += warps_sums[w * config::kBlockQueries + row].weights;
      total.dots += warps_sums[w * config::kBlockQueries + row].dots;
    }
    store(params, block, row, total);
  }
}

}  // namespace strobe::cuda
