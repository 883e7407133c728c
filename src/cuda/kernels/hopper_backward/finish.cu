// After the main kernel: dq from its sums, if that has not made it itself, and whatever gradients
// came out as no number where the mask hides what is none. Compiled with the configuration of
// portable_backward's rows.cu.

#include "device/head_columns.cuh"
#include "device/packed_blocks.cuh"
#include "kernels/hopper_backward/query_slices.cuh"
#include "kernels/portable_backward/hidden_gradients.cuh"

namespace strobe::cuda {
namespace {

using Slices = QuerySlices<config::kTileQueries, config::kTileColumns, config::kSliceColumns>;

constexpr bool kWholeChunks = config::kDim % kChunkElements == 0 && !config::kShifted;
/// Of a row, which may begin within one.
constexpr int kChunks =
    ceil_div(config::kDim + (kWholeChunks ? 0 : kChunkElements - 1), kChunkElements);

/// A block of queries of a head, as tile_of numbers them.
struct QueryTileRows {
  Sequence sequence;
  int head;
  int first;

  STROBE_DEVICE QueryTileRows(const Params& params, Word tile) {
    const Word blocks = static_cast<Word>(params.blocks);
    const Word heads = static_cast<Word>(params.heads);
    int index = static_cast<int>(tile / blocks / heads);
    int block = static_cast<int>(tile % blocks);
    head = static_cast<int>(tile / blocks % heads);
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

/// Converts eight elements of a row whose sums lie in a chunk of columns. Returns zero, or NaN if
/// one of them is not finite.
STROBE_DEVICE float finish_chunk(const Params& params, const float* sums, int row, int column,
                                 Storage* to, int element) {
  Word pairs[kChunkElements / 2];
  float probe = 0;
#pragma unroll
  for (int e = 0; e < kChunkElements; e += 2) {
    const float2 two = *reinterpret_cast<const float2*>(sums + Slices::offset_of(row, column + e));
    pairs[e / 2] = Element::pack(two.x * params.scale, two.y * params.scale);
    probe = fmaf(two.x, 0.0F, fmaf(two.y, 0.0F, probe));
  }
  store_elements(to, element, config::kDim, {pairs[0], pairs[1], pairs[2], pairs[3]});
  return probe;
}

/// Likewise of any columns.
STROBE_DEVICE float finish_elements(const Params& params, const float* sums, int row, int column,
                                    Storage* to, int element) {
  Word pairs[kChunkElements / 2];
  float probe = 0;
#pragma unroll
  for (int e = 0; e < kChunkElements; ++e) {
    const bool exists = element + e >= 0 && element + e < config::kDim;
    const float x = exists ? sums[Slices::offset_of(row, column + e)] : 0.0F;
    const auto half = static_cast<Word>(Element::narrow(x * params.scale));
    pairs[e / 2] = e % 2 == 0 ? half : pairs[e / 2] | half << 16;
    probe = fmaf(x, 0.0F, probe);
  }
  store_elements(to, element, config::kDim, {pairs[0], pairs[1], pairs[2], pairs[3]});
  return probe;
}

/// Of the sums, that is the head's: they lie as the keys do, and these as the queries.
STROBE_DEVICE int first_column_of(const Params& params, int head) {
  return elements_before(static_cast<const Storage*>(params.q) + head * params.q_strides.head);
}

/// Two neighbours in a row for two threads, then the next row: so are both reads and writes
/// contiguous for a while.
STROBE_DEVICE void finish_tile(const Params& params, Word tile) {
  constexpr int kRounds = ceil_div(config::kTileQueries * round_up(kChunks, 2), kThreads);
  const QueryTileRows rows(params, tile);
  const int first_column = config::kShifted ? first_column_of(params, rows.head) : 0;
  const float* const sums = params.dq_sums + static_cast<Wide>(tile) * Slices::kTileFloats;
  for (int round = 0; round < kRounds; ++round) {
    const int i = round * kThreads + static_cast<int>(threadIdx.x);
    const int row = i / 2 % config::kTileQueries;
    const int query = rows.first + row;
    Storage* const to = rows.row(params, query);
    const int element = (i / 2 / config::kTileQueries * 2 + i % 2) * kChunkElements -
                        (kWholeChunks ? 0 : elements_before(to));
    const bool exists = query < rows.sequence.length_q && element < config::kDim;
    const int column = element + first_column;
    float probe = 0;
    if (exists) {
      probe = kWholeChunks || config::kShifted
                  ? finish_chunk(params, sums, row, column, to, element)
                  : finish_elements(params, sums, row, column, to, element);
    }
    Word wrong = __ballot_sync(kAllLanes, probe != 0);
    __syncwarp();
    for (; wrong != 0; wrong &= wrong - 1) {
      const int lane = __ffs(static_cast<int>(wrong)) - 1;
      const int its_query = __shfl_sync(kAllLanes, query, lane);
      const int its_element = __shfl_sync(kAllLanes, element, lane);
      HiddenGradients{params, rows.sequence, rows.head}.repair_query(
          rows.row(params, its_query), its_query, larger(its_element, 0),
          smaller(its_element + kChunkElements, config::kDim));
    }
  }
}

/// A warp for each key: what is not finite in its rows of dk and dv.
STROBE_DEVICE void repair_keys(const Params& params) {
  const int key_heads = params.heads / params.heads_per_key_head;
  const Wide count = static_cast<Wide>(params.sequences) * key_heads * params.seqlen_k;
  const Wide step = static_cast<Wide>(gridDim.x) * config::kWarps;
  for (Wide i = static_cast<Wide>(blockIdx.x) * config::kWarps + warp_index(); i < count;
       i += step) {
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
/// likes.
extern "C" __global__ void __launch_bounds__(kThreads, kWholeChunks ? 0 : 3)
    hopper_finish(const __grid_constant__ Params params, const unsigned* not_finite) {
  if (config::kIsFinished && *not_finite == 0) return;
  const Word sequences = config::kVariableLength ? 1 : static_cast<Word>(params.sequences);
  const Word tiles = sequences * static_cast<Word>(params.heads) * static_cast<Word>(params.blocks);
  for (Word tile = blockIdx.x; tile < tiles; tile += gridDim.x) finish_tile(params, tile);
  if (*not_finite != 0) repair_keys(params);
}

}  // namespace strobe::cuda
