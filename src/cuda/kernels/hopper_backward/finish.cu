// After the main kernel: dq from its sums, if that has not made it itself, and whatever gradients
// came out as no number where the mask hides what is none. Compiled with the configuration of
// portable_backward's rows.cu.

#include "device/packed_blocks.cuh"
#include "device/ptx/stream_order.cuh"
#include "device/ptx/warpgroup.cuh"
#include "kernels/hopper_backward/query_rows.cuh"
#include "kernels/portable_backward/hidden_gradients.cuh"

namespace strobe::cuda {
namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kBarrier = 1;
static_assert(kThreads == kWarpgroupThreads);

using Rows = QueryRows<Element, config::kTileColumns, config::kDim, config::kShifted>;
using Sums = Rows::Sums;

/// A block of queries of a head. Heads follow each other, for so do their rows in memory.
struct QueryTileRows {
  Word tile;  ///< as tile_of numbers them
  Sequence sequence;
  int head;
  int first;

  STROBE_DEVICE QueryTileRows(const Params& params, Word number) {
    const Word blocks = static_cast<Word>(params.blocks);
    const Word heads = static_cast<Word>(params.heads);
    int index = static_cast<int>(number / heads / blocks);
    int block = static_cast<int>(number / heads % blocks);
    head = static_cast<int>(number % heads);
    tile = (index * heads + head) * blocks + block;
    if constexpr (config::kVariableLength) {
      const PackedBlocks<config::kTileQueries> packed = {params.cu_seqlens_q};
      index = packed.sequence_of(block, params.sequences);
      block -= packed.first_of(index);
    }
    sequence = sequence_at<config::kVariableLength>(params, index);
    first = block * config::kTileQueries;
  }

  STROBE_DEVICE Storage* row(const Params& params, int query) const {
    return rows_of(params.dq, params.dq_strides, sequence.index,
                   static_cast<Wide>(sequence.first_q) + query, head);
  }
};

/// A warp has 16 of the rows from `first` on.
STROBE_DEVICE void repair_rows(const Params& params, const QueryTileRows& rows, int first) {
  constexpr int kRows = Sums::kRows / kWarps;
  const int begin = first + warp_index() * kRows;
  const HiddenGradients hidden = {params, rows.sequence, rows.head};
  for (int query = begin; query < smaller(begin + kRows, rows.sequence.length_q); ++query)
    hidden.repair_query(rows.row(params, query), query, 0, config::kDim);
}

STROBE_DEVICE void finish_tile(const Params& params, Word number, Word staging) {
  const QueryTileRows tile_rows(params, number);
  constexpr int kTileFloats = config::kTileQueries / Sums::kRows * Sums::kFloats;
  const float* sums = params.dq_sums + static_cast<Wide>(tile_rows.tile) * kTileFloats;
#pragma unroll 1
  for (int row = 0; row < config::kTileQueries; row += Sums::kRows) {
    const int first = tile_rows.first + row;
    Rows rows;
    rows.load(sums);
    sums += Sums::kFloats;
    const bool finite = rows.stage(staging, params.scale);
    const bool wrong = ptx::any_of_threads(kBarrier, kThreads, !finite);
    Rows::store(staging, tile_rows.row(params, first), params.dq_strides.row,
                tile_rows.sequence.length_q - first, tile_rows.head);
    __syncthreads();  // rows are there, and the tile is free
    if (wrong) repair_rows(params, tile_rows, first);
  }
}

/// A warp for each key: what is not finite in its rows of dk and dv.
STROBE_DEVICE void repair_keys(const Params& params) {
  const int key_heads = params.heads / params.heads_per_key_head;
  const Wide count = static_cast<Wide>(params.sequences) * key_heads * params.seqlen_k;
  const Wide step = static_cast<Wide>(gridDim.x) * kWarps;
  for (Wide i = static_cast<Wide>(blockIdx.x) * kWarps + warp_index(); i < count; i += step) {
    const int key = static_cast<int>(i % params.seqlen_k);
    const int key_head = static_cast<int>(i / params.seqlen_k % key_heads);
    const Sequence sequence = sequence_at<config::kVariableLength>(
        params, static_cast<int>(i / params.seqlen_k / key_heads));
    if (key >= sequence.length_k) continue;
    const HiddenGradients hidden = {params, sequence, key_head * params.heads_per_key_head};
    const Wide row = static_cast<Wide>(sequence.first_k) + key;
    hidden.repair_key(rows_of(params.dk, params.dk_strides, sequence.index, row, key_head), key, 0,
                      config::kDim);
    hidden.repair_value(rows_of(params.dv, params.dv_strides, sequence.index, row, key_head), key,
                        0, config::kValueDim);
  }
}

}  // namespace

/// `blocks` counts those of queries of a sequence, or of all that are packed. Grid: as many as one
/// likes, of a warpgroup each.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    hopper_finish(const __grid_constant__ Params params, const unsigned* not_finite) {
  extern __shared__ uint4 staging[];
  static_assert(Rows::RowTile::kBytes <= config::kDynamicSharedBytes);
  ptx::wait_for_kernel_before();
  if (config::kIsFinished && *not_finite == 0) return;
  const Word sequences = config::kVariableLength ? 1 : static_cast<Word>(params.sequences);
  const Word tiles = sequences * static_cast<Word>(params.heads) * static_cast<Word>(params.blocks);
  for (Word tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    finish_tile(params, tile, ptx::shared_address(staging));
  if (*not_finite != 0) repair_keys(params);
}

}  // namespace strobe::cuda
