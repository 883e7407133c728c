#pragma once
// What the roles of the kernel share: types, the work of a block, and the plan of shared memory.

#include "config.cuh"
#include "device/bias_block.cuh"
#include "device/head_columns.cuh"
#include "device/mask.cuh"
#include "device/packed_blocks.cuh"
#include "device/ptx/cluster.cuh"
#include "device/ptx/warpgroup.cuh"
#include "device/schedule.cuh"
#include "device/sequence.cuh"
#include "device/slots.cuh"
#include "device/warpgroup.cuh"
#include "kernels/hopper_backward/params.cuh"
#include "kernels/hopper_backward/query_slices.cuh"

namespace strobe::cuda {

using Params = HopperBackwardParams;
using Element = ElementOf<config::kArithmetic>::Type;
using Storage = Element::Storage;
constexpr ptx::HalfType kHalfType = ElementOf<config::kArithmetic>::kType;

constexpr int kWarpgroups = config::kWarpgroups;  ///< that compute

using KeyTile = SwizzledTile<config::kBlockKeys, config::kKeyColumns>;      ///< at last dk
using ValueTile = SwizzledTile<config::kBlockKeys, config::kValueColumns>;  ///< at last dv
using QueryTile = SwizzledTile<config::kBlockQueries, config::kKeyColumns>;
using DoutTile = SwizzledTile<config::kBlockQueries, config::kValueColumns>;

/// How heads are loaded. Where they bring others, keys and values are cleared of these (see
/// Consumer): so what queries and dout bring is multiplied with zeros, and makes columns of dk and
/// dv that nobody stores.
template <class RowTile, int dim>
using RowHeads = Either<config::kShifted, HeadsWithOthers<RowTile, dim>, WholeHeads<RowTile>>;
using KeyHeads = RowHeads<KeyTile, config::kDim>;
using ValueHeads = RowHeads<ValueTile, config::kValueDim>;
using QueryHeads = RowHeads<QueryTile, config::kDim>;
using DoutHeads = RowHeads<DoutTile, config::kValueDim>;

using ScoreTile = SwizzledTile<config::kBlockQueries, config::kBlockKeys>;
using Bias =
    BiasBlock<Element, config::kBiasPerQuery ? config::kBlockQueries : 1, config::kBlockKeys>;
using Slices = QuerySlices<config::kBlockQueries, config::kKeyColumns, config::kSlices>;
static_assert(Slices::kTileFloats == config::kTileFloats);

/// Keys are the rows of scores, queries their columns.
using Scores = Accumulator<1, config::kBlockQueries / 8>;
using KeySums = Accumulator<1, config::kKeyColumns / 8>;      ///< of dk
using ValueSums = Accumulator<1, config::kValueColumns / 8>;  ///< of dv
using QuerySums = Accumulator<1, Slices::kMostColumnTiles>;
using ScoreOperand = RegisterOperand<config::kBlockQueries>;
/// Measured: narrow heads gain by counting with 32 bits, wide ones lose.
using MaskCount = Either<(config::kKeyColumns <= 64), int, Wide>;
using Mask = WindowMask<config::kWindowLeft, config::kWindowRight, MaskCount>;

STROBE_DEVICE Mask mask_of(const Params& params, const Sequence& sequence) {
  return {static_cast<MaskCount>(params.window_left), static_cast<MaskCount>(params.window_right),
          sequence.length_q, sequence.length_k};
}

/// Blocks of keys that are worked on together, see ScoreSender.
constexpr int kBlocksTogether = config::kInPairs ? 2 : 1;
STROBE_DEVICE int rank_of_block() {
  return static_cast<int>(blockIdx.x % kBlocksTogether);
}
STROBE_DEVICE int partner_of_block() {
  return 1 - rank_of_block();
}

/// Key heads whose blocks start in turns. Where blocks of a head wait for each other to add to dq,
/// others' start between them, so that they seldom do.
STROBE_DEVICE int heads_of_section(const Params& params) {
  return config::kDeterministic ? params.heads_of_section : 1;
}

/// What a block works on.
struct KeyBlock {
  int first_key;
  int head;  ///< of keys
  Sequence sequence;
  Wide first_tile;  ///< of the sequence's queries, of the first head: see tile_of

  /// The first keys come first: where the mask is causal, they are seen by the most queries. Not
  /// where blocks wait for others to add to dq: that one goes before which comes to a query first.
  /// With variable lengths called by a whole warp.
  STROBE_DEVICE static KeyBlock of_this_block(const Params& params) {
    constexpr bool kLastFirst = config::kWindowRight && config::kDeterministic;
    const Schedule schedule = {
        params.key_blocks / kBlocksTogether, params.heads / params.heads_per_key_head,
        config::kVariableLength ? 1 : params.sequences, heads_of_section(params)};
    WorkItem item = schedule.item<kLastFirst, kBlocksTogether>(blockIdx.x);
    item.block = item.block * kBlocksTogether + item.value_part;
    Wide first_tile = static_cast<Wide>(item.sequence) * params.heads * params.query_blocks;
    if constexpr (config::kVariableLength) {
      const PackedBlocks<config::kBlockKeys> blocks = {params.cu_seqlens_k};
      item.sequence = blocks.sequence_of(item.block, params.sequences);
      item.block -= blocks.first_of(item.sequence);
      first_tile = PackedBlocks<config::kBlockQueries>{params.cu_seqlens_q}.first_of(item.sequence);
    }
    return {item.block * config::kBlockKeys, item.head,
            sequence_at<config::kVariableLength>(params, item.sequence), first_tile};
  }

  STROBE_DEVICE int first_key_together() const {
    return first_key - rank_of_block() * config::kBlockKeys;
  }

  /// A row of q, k and what is like them, as boxes have it: packed sequences are one.
  STROBE_DEVICE BoxOrigin query_origin(int query, int query_head) const {
    return {{0, sequence.first_q + query, query_head, box_sequence()}};
  }
  STROBE_DEVICE BoxOrigin key_origin(int key) const {
    return {{0, sequence.first_k + key, head, box_sequence()}};
  }

  /// Rows of dk or dv from a key on.
  STROBE_DEVICE Storage* rows(void* data, const RowStrides& strides, int key) const {
    return static_cast<Storage*>(data) + sequence.index * strides.sequence +
           static_cast<Wide>(sequence.first_k + key) * strides.row + head * strides.head;
  }

 private:
  STROBE_DEVICE int box_sequence() const { return config::kVariableLength ? 0 : sequence.index; }
};

/// Blocks of queries that see the keys, or those that are worked on with them.
STROBE_DEVICE Blocks query_blocks(const Params& params, const KeyBlock& keys) {
  const Mask mask = mask_of(params, keys.sequence);
  Blocks blocks = mask.query_blocks<config::kBlockQueries, config::kBlockKeys>(keys.first_key);
  if constexpr (kBlocksTogether > 1) {
    const Blocks all =
        mask.query_blocks<config::kBlockQueries, kBlocksTogether * config::kBlockKeys>(
            keys.first_key_together());
    blocks.begin = all.begin;
    blocks.end = all.end;
  }
  return blocks;
}

/// Whether queries may end behind which others follow that do not see a key: by a window, or where
/// the next sequence begins. Then there may be keys that no query sees, and blocks without keys.
constexpr bool kQueriesEnd = config::kWindowLeft || config::kVariableLength;

STROBE_DEVICE bool is_seen(const Params& params, const KeyBlock& keys) {
  const Blocks blocks = query_blocks(params, keys);
  return keys.first_key_together() < keys.sequence.length_k && blocks.begin < blocks.end;
}

/// Whether blocks of keys begin at different queries, so that they do not all add to the same dq at
/// once. Where a window limits what is seen they do anyway.
constexpr bool kSpreads = !config::kWindowLeft && !config::kWindowRight && !config::kDeterministic;

/// The blocks of queries that see the keys, of one head of the group after the other. There is one
/// at least, or nobody is here: see is_seen.
class Walk {
 public:
  STROBE_DEVICE Walk(const Params& params, const KeyBlock& keys)
      : heads_left_(params.heads_per_key_head) {
    const Blocks blocks = query_blocks(params, keys);
    const bool whole = keys.first_key + config::kBlockKeys <= keys.sequence.length_k;
    end_ = blocks.end;
    first_ = kSpreads ? keys.first_key_together() / config::kBlockQueries % end_ : blocks.begin;
    block_ = first_;
    full_begin_ = whole ? blocks.full_begin : blocks.end;
    full_end_ = blocks.full_end;
  }

  STROBE_DEVICE bool done() const { return heads_left_ == 0; }
  STROBE_DEVICE bool is_last() const { return heads_left_ == 1 && block_after() == first_; }
  STROBE_DEVICE void next() {
    block_ = block_after();
    if (block_ == first_) --heads_left_;
  }

  /// Of the queries.
  STROBE_DEVICE int head(const Params& params, const KeyBlock& keys) const {
    return (keys.head + 1) * params.heads_per_key_head - heads_left_;
  }
  STROBE_DEVICE int block() const { return block_; }
  STROBE_DEVICE int first_query() const { return block_ * config::kBlockQueries; }
  /// Whether every query of the block sees every key. Those past the end see nothing: that is told
  /// by their statistics, but where they are another sequence's.
  STROBE_DEVICE bool is_full() const {
    return block_ >= full_begin_ && (!kQueriesEnd || block_ < full_end_);
  }

 private:
  STROBE_DEVICE int block_after() const {
    if (block_ + 1 < end_) return block_ + 1;
    return kSpreads ? 0 : first_;
  }

  int first_;
  int end_;
  int full_begin_;
  int full_end_;
  int block_;
  int heads_left_;
};

/// Where the sums of a block of queries lie, in tiles.
STROBE_DEVICE Wide tile_of(const Params& params, const KeyBlock& keys, const Walk& walk) {
  return keys.first_tile + static_cast<Wide>(walk.head(params, keys)) * params.query_blocks +
         walk.block();
}

/// Whether slices of dq are added to the sums by the copy unit, rather than by those who have them.
constexpr bool kHandsSlicesOver = config::kSliceSlots > 0;
constexpr int kSliceBarriers = larger(config::kSliceSlots, 1);
/// Whether those who have them take turns with other blocks of keys, see TurnKeeper.
constexpr bool kTakesTurns = config::kDeterministic && !kHandsSlicesOver;
/// That add different slices to a tile of dq.
constexpr int kTileWriters = config::kSliceWriters * kBlocksTogether;

/// Of dout and the statistics of queries. Scores have as many, so that those who are done with one
/// may fill the next while others still read it.
constexpr int kStages = 2;
constexpr int kScoreStages = config::kInPairs ? 1 : kStages;  ///< for want of memory
using ScoreTurn = SlotTurn<kScoreStages>;

/// What a block has of a tile of dq: some slices, and if two blocks have an odd number together,
/// then each half of the one in the middle.
struct BlockSlices {
  static constexpr int kWhole = Slices::kCount / kBlocksTogether;
  static constexpr bool kHasHalf = Slices::kCount % kBlocksTogether != 0;
  static constexpr int kParts = kWhole + (kHasHalf ? 1 : 0);               ///< the half comes last
  static constexpr int kHalfTiles = kHasHalf ? Slices::kStep / 8 / 2 : 1;  ///< of columns

  STROBE_DEVICE static constexpr bool is_half(int part) { return part == kWhole; }
  STROBE_DEVICE static int slice(int part) {
    return is_half(part) ? kWhole : rank_of_block() * (Slices::kCount - kWhole) + part;
  }
  /// Where it begins in the slice.
  STROBE_DEVICE static int first_column(int part) {
    return is_half(part) ? rank_of_block() * Slices::kStep / 2 : 0;
  }
  STROBE_DEVICE static int first_panel() { return rank_of_block() * (Slices::kCount - kParts); }
};

/// The columns of the other block's keys that parts are made of.
using PartnerTile = SwizzledTile<config::kBlockKeys, BlockSlices::kParts * Slices::kStep>;

struct Control {
  SlotBarriers<1> keys;
  SlotBarriers<1> values;
  SlotBarriers<config::kQuerySlots> queries;
  SlotBarriers<kStages> douts;
  SlotBarriers<kStages> statistics;
  SlotBarriers<kScoreStages> scores;
  SlotBarriers<1> partner_keys;
  unsigned long long partner_scores;
  SlotBarriers<kSliceBarriers> slices[config::kSliceWriters];
  SlotBarriers<1> turns[config::kSliceWriters];
  unsigned long long added;  ///< all slices to the sums, see HeadSums
  bool adds_last;            ///< likewise
  KeyBlock block;            ///< with variable lengths

  /// By one thread.
  STROBE_DEVICE void init() {
    constexpr int kConsumerWarps = kWarpgroups * 4;
    keys.init(kConsumerWarps);
    values.init(kConsumerWarps);
    queries.init(kConsumerWarps);
    douts.init(kConsumerWarps);
    // Every lane for what it has read or stored itself, an order that racecheck can follow.
    statistics.init(kConsumerWarps * 32, 32 + (config::kBias ? 1 : 0));
    constexpr int kScoreWarps = config::kSplitsGradients ? 4 : kConsumerWarps;
    scores.init(kScoreWarps * kBlocksTogether, kScoreWarps);
    partner_keys.init(4);
    ptx::init_barrier(ptx::shared_address(&partner_scores), 1);
#pragma unroll
    for (int i = 0; i < config::kSliceWriters; ++i) {
      slices[i].init(1, 4);
      turns[i].init(4);
    }
    ptx::init_barrier(ptx::shared_address(&added), config::kSliceWriters);
    adds_last = false;
    ptx::fence_barrier_init();
  }
};

/// The plan of shared memory. It begins where the compiler knows, so that every address is a
/// constant and takes no register.
class Shared {
 public:
  STROBE_DEVICE explicit Shared(void* memory)
      : begin_(ptx::shared_address(memory)),
        control_(reinterpret_cast<Control*>(static_cast<char*>(memory) + kControl)) {}

  STROBE_DEVICE Word keys() const { return begin_; }
  STROBE_DEVICE Word values() const { return begin_ + KeyTile::kBytes; }
  STROBE_DEVICE Word queries(int slot) const {
    return begin_ + kQueries + slot * QueryTile::kBytes;
  }
  STROBE_DEVICE Word douts(int slot) const { return begin_ + kDouts + slot * DoutTile::kBytes; }
  STROBE_DEVICE Word scores(int slot) const { return begin_ + kScores + slot * ScoreTile::kBytes; }
  STROBE_DEVICE Word partner_scores() const {
    return begin_ + kScores + kScoreStages * ScoreTile::kBytes;
  }
  STROBE_DEVICE Word partner_keys() const { return begin_ + kPartnerKeys; }
  STROBE_DEVICE Word slice(int writer, int slot) const {
    return begin_ + kSlices + (writer * config::kSliceSlots + slot) * kSliceBytes;
  }
  /// Of a block of queries: their bases, then their deltas.
  STROBE_DEVICE Word statistics(int slot) const {
    return begin_ + kStatistics + slot * kStatisticsBytes;
  }
  /// What is added to the scores comes with the statistics.
  STROBE_DEVICE Bias bias(int slot) const { return {begin_ + kBias + slot * Bias::Tile::kBytes}; }
  STROBE_DEVICE Control& control() const { return *control_; }

  /// What this block works on: found once where sequences must be searched, else made anew each
  /// time, for want of registers.
  STROBE_DEVICE KeyBlock key_block(const Params& params) const {
    if constexpr (config::kVariableLength) return control_->block;
    return KeyBlock::of_this_block(params);
  }

  static constexpr int kSliceBytes = Slices::Rows::offset(Slices::kMostColumnTiles, 0) * 4;
  static constexpr int kDeltas = config::kBlockQueries * 4;  ///< from the bases on

 private:
  static constexpr int kStatisticsBytes = 2 * kDeltas;
  static constexpr int kQueries = KeyTile::kBytes + ValueTile::kBytes;
  static constexpr int kDouts = kQueries + config::kQuerySlots * QueryTile::kBytes;
  static constexpr int kScores = kDouts + kStages * DoutTile::kBytes;
  static constexpr int kPartnerKeys = kScores + kStages * ScoreTile::kBytes;
  static constexpr int kSlices = kPartnerKeys + (config::kInPairs ? PartnerTile::kBytes : 0);
  static constexpr int kBias = kSlices + config::kSliceWriters * config::kSliceSlots * kSliceBytes;
  static constexpr int kStatistics = kBias + (config::kBias ? kStages * Bias::Tile::kBytes : 0);
  static constexpr int kControl = kStatistics + kStages * kStatisticsBytes;
  static_assert(kControl + sizeof(Control) <= config::kDynamicSharedBytes);
  static_assert(!config::kInPairs || config::kSliceSlots == 0, "pairs add to the sums themselves");

  Word begin_;
  Control* control_;
};

}  // namespace strobe::cuda
