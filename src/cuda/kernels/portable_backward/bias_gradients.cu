// The gradient of the bias, the same in every run. A thread block has the gradients of some queries
// and keys and goes through all that share their bias: sequences, heads, and blocks of queries,
// where the bias does not have the axis. Scores are computed anew for it, so that nothing needs to
// be added up in memory.

#include "kernels/portable_backward/common.cuh"

namespace strobe::cuda {
namespace {

/// Shared memory.
struct Memory {
  ScoreOperands tiles;
  Word column_sums;  ///< fp32 [kScoreQueryWarps][kBlockKeys]

  STROBE_DEVICE explicit Memory(Word begin)
      : tiles{begin, begin + QueryTile::kBytes, begin + QueryTile::kBytes + DoutTile::kBytes,
              begin + QueryTile::kBytes + DoutTile::kBytes + KeyTile::kBytes},
        column_sums(tiles.values + ValueTile::kBytes) {}
};

/// What one block of the bias serves.
struct Range {
  int begin;
  int end;
};
STROBE_DEVICE Range range_of(bool own_axis, int index, int size) {
  return own_axis ? Range{index, index + 1} : Range{0, size};
}

STROBE_DEVICE void load(const Memory& memory, const Params& params, const Sequence& sequence,
                        int head, int first_query, int first_key) {
  const Wide row_q = static_cast<Wide>(sequence.first_q) + first_query;
  const Wide row_k = static_cast<Wide>(sequence.first_k) + first_key;
  const int key_head = head / params.heads_per_key_head;
  const int queries = sequence.length_q - first_query;
  const int keys = sequence.length_k - first_key;
  load_tile<QueryTile>(memory.tiles.queries, params.q, params.q_strides, sequence.index, row_q,
                       head, queries, config::kDim);
  load_tile<DoutTile>(memory.tiles.douts, params.dout, params.dout_strides, sequence.index, row_q,
                      head, queries, config::kValueDim);
  load_tile<KeyTile>(memory.tiles.keys, params.k, params.k_strides, sequence.index, row_k, key_head,
                     keys, config::kDim);
  load_tile<ValueTile>(memory.tiles.values, params.v, params.v_strides, sequence.index, row_k,
                       key_head, keys, config::kValueDim);
  ptx::wait_for_all_copies();
  __syncthreads();
}

/// Adds one block of one head.
STROBE_DEVICE void add_block(Scores& sums, const Memory& memory, const Params& params,
                             const Sequence& sequence, int head, int first_query, int first_key) {
  const Blocks seeing =
      mask_of(params, sequence).query_blocks<config::kBlockQueries, config::kBlockKeys>(first_key);
  const int block = first_query / config::kBlockQueries;
  if (first_query >= sequence.length_q || block < seeing.begin || block >= seeing.end) return;
  __syncthreads();  // all have left the tiles
  load(memory, params, sequence, head, first_query, first_key);
  if (warp_index() >= kScoreWarps) return;
  Scores probabilities, gradients;
  compute_scores<Gradient::logits>(probabilities, gradients, memory.tiles, params, sequence, head,
                                   first_query, static_cast<Word>(first_key),
                                   seeing.is_full(block));
#pragma unroll
  for (int r = 0; r < Scores::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
      sums.at(r, c, 0) += gradients.at(r, c, 0);
      sums.at(r, c, 1) += gradients.at(r, c, 1);
    }
  }
}

STROBE_DEVICE void store_rows_of_bias(Scores& sums, Storage* to, Wide stride, int first_query,
                                      int first_key, const Params& params) {
#pragma unroll
  for (int r = 0; r < Scores::kRows; ++r) {
    const int query = first_query + Scores::row_index(r);
    if (query >= params.seqlen_q) continue;
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = first_key + Scores::column_index(c) + i;
        if (key < params.seqlen_k) to[query * stride + key] = Element::narrow(sums.at(r, c, i));
      }
    }
  }
}

/// One row that serves all queries: sums over a warp's rows, then over the warps.
STROBE_DEVICE void store_sum_of_rows(Scores& sums, const Memory& memory, Storage* to, int first_key,
                                     const Params& params) {
  if (warp_index() < kScoreWarps) {
    const Word warp_sums =
        memory.column_sums + (warp_index() / kScoreKeyWarps * config::kBlockKeys +
                              warp_index() % kScoreKeyWarps * kScoreKeys) *
                                 static_cast<int>(sizeof(float));
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = 0;
#pragma unroll
        for (int r = 0; r < Scores::kRows; ++r) sum += sums.at(r, c, i);
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2) {
          sum += __shfl_xor_sync(kAllLanes, sum, distance);
        }
        if (lane_index() < 4) {
          ptx::store_word(warp_sums + (Scores::column_index(c) + i) * 4, __float_as_uint(sum));
        }
      }
    }
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < config::kBlockKeys; c += kThreads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kScoreQueryWarps; ++w) {
      sum += __uint_as_float(ptx::load_word(memory.column_sums + (w * config::kBlockKeys + c) * 4));
    }
    if (first_key + c < params.seqlen_k) to[first_key + c] = Element::narrow(sum);
  }
}

}  // namespace

/// `blocks` counts those of keys times those of queries, or of keys alone where one row serves all
/// queries; the grid is blocks · heads · sequences, of which a shared axis counts as one.
extern "C" __global__ void __launch_bounds__(kThreads, config::kBlocksPerMultiprocessor)
    portable_bias_gradients(const __grid_constant__ Params params) {
  extern __shared__ uint4 shared[];
  const Memory memory(ptx::shared_address(shared));
  const Word key_blocks = ceil_div<Word>(static_cast<Word>(params.seqlen_k), config::kBlockKeys);
  const Word bias_heads = params.bias_per_head ? static_cast<Word>(params.heads) : 1U;
  const int block = static_cast<int>(blockIdx.x % static_cast<Word>(params.blocks));
  const Word axes = blockIdx.x / static_cast<Word>(params.blocks);
  const int head = static_cast<int>(axes % bias_heads);
  const int sequence = static_cast<int>(axes / bias_heads);
  const int first_key =
      static_cast<int>(static_cast<Word>(block) % key_blocks) * config::kBlockKeys;
  const int query_block = static_cast<int>(static_cast<Word>(block) / key_blocks);

  const Range sequences = range_of(params.bias_per_sequence, sequence, params.sequences);
  const Range heads = range_of(params.bias_per_head, head, params.heads);
  const Range query_blocks = range_of(params.bias_per_query, query_block,
                                      ceil_div(params.seqlen_q, config::kBlockQueries));
  Scores sums;
  sums.clear();
  for (int s = sequences.begin; s < sequences.end; ++s) {
    const Sequence one = sequence_at<config::kVariableLength>(params, s);
    if (first_key >= one.length_k) continue;
    for (int h = heads.begin; h < heads.end; ++h) {
      for (int q = query_blocks.begin; q < query_blocks.end; ++q) {
        add_block(sums, memory, params, one, h, q * config::kBlockQueries, first_key);
      }
    }
  }
  Storage* to = rows_of(params.dbias, params.dbias_strides, sequence, 0, head);
  if (!params.bias_per_query) {
    store_sum_of_rows(sums, memory, to, first_key, params);
  } else if (warp_index() < kScoreWarps) {
    store_rows_of_bias(
        sums, to, params.dbias_strides.row,
        query_block * config::kBlockQueries + warp_index() / kScoreKeyWarps * kScoreQueries,
        first_key + warp_index() % kScoreKeyWarps * kScoreKeys, params);
  }
}

}  // namespace strobe::cuda
