// Flash attention, backward: dq, the same in every run. The gradients of scores, which the kernel
// of dk and dv has computed already, are computed anew: two products more than it takes to add to
// sums in memory, whose order is not fixed.

#include "kernels/portable_backward/hidden_gradients.cuh"
#include "kernels/portable_backward/query_block.cuh"

namespace strobe::cuda {
namespace {

constexpr int kQueryWarps = config::kQueryWarps;
constexpr int kWarpQueries = config::kBlockQueries / kQueryWarps;
static_assert(kWarpQueries % 16 == 0);

using QueryPart = ColumnPart<config::kDim, config::kWarps / kQueryWarps>;
using QuerySums = Accumulator<kWarpQueries / 16, QueryPart::kColumns / 8>;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, config::kBlocksPerMultiprocessor)
    portable_query_gradients(const __grid_constant__ Params params) {
  extern __shared__ uint4 shared[];
  const Word memory = ptx::shared_address(shared);
  const QueryBlock block(params, memory);
  if (block.rows() == 0) return;

  const int row = warp_index() % kQueryWarps * kWarpQueries;
  const QueryPart part(warp_index() / kQueryWarps);
  QuerySums dq;
  dq.clear();
  block.for_each_block<Gradient::scores>(
      [&](Scores&, Scores& gradients) { store_scores(gradients, block.gradients()); },
      [&](Word keys) {
        __syncthreads();
        Product::add_rows_times_columns<config::kBlockKeys, ScoreTile::kPitch, KeyTile::kPitch>(
            dq, block.gradients() + row * ScoreTile::kPitch, keys + part.offset());
      });

  constexpr int kStagingBytes = kWarpQueries * (QueryPart::kColumns * kElementBytes + 16);
  static_assert(config::kWarps * kStagingBytes <= config::kDynamicSharedBytes);
  Storage* to = rows_of(params.dq, params.dq_strides, block.sequence().index,
                        block.first_row() + row, block.head());
  store_gradients(dq, params.scale, memory + warp_index() * kStagingBytes, part, to,
                  params.dq_strides.row, block.rows() - row, params.dq_aligned != 0);
  if (!any_not_finite(dq)) return;
  __syncwarp();
  const HiddenGradients hidden = {params, block.sequence(), block.head()};
  for (int r = 0; r < smaller(block.rows() - row, kWarpQueries); ++r) {
    hidden.repair_query(to + r * params.dq_strides.row, block.first() + row + r, part.owned,
                        part.end());
  }
}

}  // namespace strobe::cuda
