// Flash attention, backward: dk and dv, and unless deterministic also dq. A thread block has some
// keys of one key head and goes through the blocks of queries that see them, of all query heads of
// the group, so that dk and dv are summed in registers in a fixed order. Probabilities and
// gradients of scores pass through shared memory, from the warps' shares of a block of scores to
// their shares of the three products that follow.

#include "device/ptx/again.cuh"
#include "device/ptx/reduction.cuh"
#include "device/schedule.cuh"
#include "device/tile_ring.cuh"
#include "kernels/portable_backward/common.cuh"
#include "kernels/portable_backward/hidden_gradients.cuh"
#include "kernels/portable_backward/query_sums.cuh"

namespace strobe::cuda {
namespace {

constexpr bool kAddsToDq = !config::kDeterministic;

/// Of dk and dv a warp has some keys and some columns, of dq some queries and some columns.
constexpr int kKeyWarps = config::kKeyWarps;
constexpr int kKeyColumnWarps = config::kWarps / kKeyWarps;
constexpr int kWarpKeys = config::kBlockKeys / kKeyWarps;
constexpr int kQueryWarps = config::kQueryWarps;
constexpr int kWarpQueries = config::kBlockQueries / kQueryWarps;
static_assert(kWarpKeys % 16 == 0 && kWarpQueries % 16 == 0);

using KeyPart = ColumnPart<config::kDim, kKeyColumnWarps>;
using ValuePart = ColumnPart<config::kValueDim, kKeyColumnWarps>;
using KeySums = Accumulator<kWarpKeys / 16, KeyPart::kColumns / 8>;
using ValueSums = Accumulator<kWarpKeys / 16, ValuePart::kColumns / 8>;
using QuerySums = Accumulator<kWarpQueries / 16, QuerySumsLayout::kPartTiles>;

using Ring = TileRing<config::kTileSlots, QueryTile::kBytes + DoutTile::kBytes>;

/// Shared memory.
struct Memory {
  Word keys;
  Word values;
  Word probabilities;
  Word gradients;
  Word ring;

  STROBE_DEVICE explicit Memory(Word begin)
      : keys(begin),
        values(keys + KeyTile::kBytes),
        probabilities(values + ValueTile::kBytes),
        gradients(probabilities + ScoreTile::kBytes),
        ring(gradients + ScoreTile::kBytes) {}
};

/// The keys of a thread block.
struct KeyBlock {
  Sequence sequence;
  int head;  ///< of keys
  Wide first;

  STROBE_DEVICE KeyBlock(const Params& params, Word index) {
    const Schedule schedule = {params.blocks, params.heads / params.heads_per_key_head,
                               params.sequences, params.heads_per_section};
    // The first keys are seen by the most queries, where the mask is causal.
    const WorkItem item = schedule.item<false, 1>(index);
    sequence = sequence_at<config::kVariableLength>(params, item.sequence);
    head = item.head;
    first = static_cast<Wide>(item.block) * config::kBlockKeys;
  }

  STROBE_DEVICE void load(const Memory& memory, const Params& params) const {
    const Wide row = sequence.first_k + first;
    const int rows = static_cast<int>(sequence.length_k - first);
    load_tile<KeyTile, config::kAligned && is_whole_chunks(config::kDim, kElementBytes)>(
        memory.keys, params.k, params.k_strides, sequence.index, row, head, rows, config::kDim);
    load_tile<ValueTile, config::kAligned && is_whole_chunks(config::kValueDim, kElementBytes)>(
        memory.values, params.v, params.v_strides, sequence.index, row, head, rows,
        config::kValueDim);
  }
};

/// Blocks of queries of the heads of a group, one head after the other.
struct Position {
  int head;
  int block;

  STROBE_DEVICE void advance(const Blocks& blocks) {
    if (++block == blocks.end) block = blocks.begin, ++head;
  }
};

/// Brings queries and dout to the ring.
class Loader {
 public:
  STROBE_DEVICE Loader(const Params& params, const Sequence& sequence, int first_head,
                       const Blocks& blocks)
      : params_(params),
        sequence_(sequence),
        blocks_(blocks),
        next_{first_head, blocks.begin},
        end_(first_head + (blocks.begin < blocks.end ? params.heads_per_key_head : 0)) {}

  STROBE_DEVICE bool done(const Position& position) const { return position.head >= end_; }

  STROBE_DEVICE void load(Ring& ring) {
    if (!done(next_)) {
      const int first = next_.block * config::kBlockQueries;
      const int rows = sequence_.length_q - first;
      const Word tile = ring.filling();
      const Wide row = static_cast<Wide>(sequence_.first_q) + first;
      load_tile<QueryTile>(tile, params_.q, params_.q_strides, sequence_.index, row, next_.head,
                           rows, config::kDim);
      load_tile<DoutTile>(tile + QueryTile::kBytes, params_.dout, params_.dout_strides,
                          sequence_.index, row, next_.head, rows, config::kValueDim);
      next_.advance(blocks_);
    }
    ring.filled();
  }

 private:
  const Params& params_;
  const Sequence& sequence_;
  const Blocks& blocks_;
  Position next_;
  int end_;
};

/// Adds a block's share to the sums of dq. The last part may reach over the end of the rows; what
/// is computed there goes nowhere.
STROBE_DEVICE void add_to_dq(const Memory& memory, const Params& params, const Sequence& sequence,
                             const Position& position) {
  using Layout = QuerySumsLayout;
  const int row = warp_index() % kQueryWarps * kWarpQueries;
  const int first_column = warp_index() / kQueryWarps * Layout::kPartColumns;
  if (first_column >= config::kDim) return;
  QuerySums sums;
  sums.clear();
  Product::add_rows_times_columns<config::kBlockKeys, ScoreTile::kPitch, KeyTile::kPitch>(
      sums, memory.gradients + row * ScoreTile::kPitch, memory.keys + first_column * kElementBytes);
  const int first_query = position.block * config::kBlockQueries + row;
  float* part =
      params.dq_sums +
      (workspace_row(params, sequence, position.head) + first_query) * Layout::kRowFloats +
      first_column;
  const int quarter = lane_index() % 4;
#pragma unroll
  for (int r = 0; r < QuerySums::kRows; ++r) {
    const int query = QuerySums::row_index(r);
    if (first_query + query >= sequence.length_q) continue;
    float* to = part + static_cast<Wide>(query) * Layout::kRowFloats;
#pragma unroll
    for (int tile = 0; tile < QuerySums::kColumnTiles; tile += 2) {
      if (first_column + tile * 8 >= config::kDim) break;
      float* place = to + Layout::offset(first_column, tile, quarter);
      if (Layout::is_paired(first_column, tile)) {
        ptx::add_four(place, sums.at(r, tile, 0), sums.at(r, tile, 1), sums.at(r, tile + 1, 0),
                      sums.at(r, tile + 1, 1));
      } else {
        ptx::add_pair(place, sums.at(r, tile, 0), sums.at(r, tile, 1));
      }
    }
  }
}

/// Goes through the blocks of queries.
STROBE_DEVICE void accumulate(KeySums& dk, ValueSums& dv, const Memory& memory,
                              const Params& params, const Sequence& sequence, int key_head,
                              int first_key) {
  const Mask mask = mask_of(params, sequence);
  const Blocks blocks = mask.query_blocks<config::kBlockQueries, config::kBlockKeys>(first_key);
  const int key = warp_index() % kKeyWarps * kWarpKeys;
  const KeyPart key_part(warp_index() / kKeyWarps);
  const ValuePart value_part(warp_index() / kKeyWarps);
  const bool adds_first = config::kAddsInTurns && warp_index() % 2 != 0;

  Ring ring(memory.ring);
  Loader loader(params, sequence, key_head * params.heads_per_key_head, blocks);
  for (int tile = 0; tile < Ring::kAhead; ++tile) loader.load(ring);
  for (Position at = {key_head * params.heads_per_key_head, blocks.begin}; !loader.done(at);
       at.advance(blocks)) {
    ring.arrived();
    loader.load(ring);
    ring.ready();
    const Word queries = ring.current();
    const Word douts = queries + QueryTile::kBytes;
    if (warp_index() < kScoreWarps) {
      Scores probabilities, gradients;
      compute_scores<Gradient::scores>(probabilities, gradients,
                                       {queries, douts, memory.keys, memory.values}, params,
                                       sequence, at.head, at.block * config::kBlockQueries,
                                       static_cast<Word>(first_key), blocks.is_full(at.block));
      store_scores(probabilities, memory.probabilities);
      store_scores(gradients, memory.gradients);
    }
    __syncthreads();
    if (kAddsToDq && adds_first) add_to_dq(memory, params, sequence, at);
    Product::add_columns_times_columns<config::kBlockQueries, ScoreTile::kPitch, DoutTile::kPitch>(
        dv, memory.probabilities + key * kElementBytes, douts + value_part.offset());
    if (kAddsToDq && !adds_first) add_to_dq(memory, params, sequence, at);
    Product::add_columns_times_columns<config::kBlockQueries, ScoreTile::kPitch, QueryTile::kPitch>(
        dk, memory.gradients + key * kElementBytes, queries + key_part.offset());
    ring.next();
  }
}

STROBE_DEVICE void store(KeySums& dk, ValueSums& dv, Word memory, const Params& params,
                         const Sequence& sequence, int key_head, int first_key) {
  constexpr int kStagingBytes =
      kWarpKeys * (larger(KeyPart::kColumns, ValuePart::kColumns) * kElementBytes + 16);
  static_assert(config::kWarps * kStagingBytes <= config::kDynamicSharedBytes);
  const Word staging = memory + warp_index() * kStagingBytes;
  const int key = first_key + warp_index() % kKeyWarps * kWarpKeys;
  const int rows = sequence.length_k - key;
  const KeyPart key_part(warp_index() / kKeyWarps);
  const ValuePart value_part(warp_index() / kKeyWarps);
  const auto rows_from = [&](void* data, const RowStrides& strides) {
    return rows_of(data, strides, sequence.index, static_cast<Wide>(sequence.first_k) + key,
                   key_head);
  };
  Storage* dk_rows = rows_from(params.dk, params.dk_strides);
  Storage* dv_rows = rows_from(params.dv, params.dv_strides);
  store_gradients(dv, config::kDropout ? params.dropout_scale : 1.0F, staging, value_part, dv_rows,
                  params.dv_strides.row, rows, params.dv_aligned != 0);
  __syncwarp();  // dk takes the place of dv
  store_gradients(dk, params.scale, staging, key_part, dk_rows, params.dk_strides.row, rows,
                  params.dk_aligned != 0);
  if (!any_not_finite(dk) && !any_not_finite(dv)) return;
  __syncwarp();
  const HiddenGradients hidden = {params, sequence, key_head * params.heads_per_key_head};
  for (int r = 0; r < smaller(rows, kWarpKeys); ++r) {
    hidden.repair_key(dk_rows + r * params.dk_strides.row, key + r, key_part.owned, key_part.end());
    hidden.repair_value(dv_rows + r * params.dv_strides.row, key + r, value_part.owned,
                        value_part.end());
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, config::kBlocksPerMultiprocessor)
    portable_key_gradients(const __grid_constant__ Params params) {
  extern __shared__ uint4 shared[];
  const Memory memory(ptx::shared_address(shared));
  KeySums dk;
  ValueSums dv;
  dk.clear();
  dv.clear();
  {
    const KeyBlock block(params, blockIdx.x);
    if (block.first >= block.sequence.length_k) return;
    block.load(memory, params);
    accumulate(dk, dv, memory, params, block.sequence, block.head, static_cast<int>(block.first));
  }
  ptx::wait_for_all_copies();
  __syncthreads();  // what follows takes the place of the keys
  const KeyBlock block(params, static_cast<Word>(ptx::again(static_cast<int>(blockIdx.x))));
  store(dk, dv, memory.keys, params, block.sequence, block.head, static_cast<int>(block.first));
}

}  // namespace strobe::cuda
