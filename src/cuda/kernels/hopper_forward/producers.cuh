#pragma once
// The roles of the first warpgroup, one thread each: one hands out tiles, the others load queries,
// keys and values ahead of those who use them.

#include "device/schedule.cuh"
#include "kernels/hopper_forward/layout.cuh"

namespace strobe::cuda {

/// How loaders see the tiles that are handed out.
class TileReader {
 public:
  STROBE_DEVICE explicit TileReader(Control& control) : control_(control), slots_(control.tiles) {}

  /// False if there are no more.
  STROBE_DEVICE bool next(Tile& tile) {
    slots_.wait();
    tile = control_.tile[slots_.slot()];
    slots_.release(slots_.slot());
    slots_.next();
    return tile.exists();
  }

 private:
  Control& control_;
  SlotUser<kTileSlots> slots_;
};

/// Hands out tiles. Those of a thread block are known from the start, unless it asks for each of
/// them. Packed sequences have been put in order, the longest first, see order.cu.
class Scheduler {
 public:
  STROBE_DEVICE Scheduler(const Shared& shared, const Params& params)
      : control_(shared.control()),
        params_(params),
        unequal_(static_cast<Word>(params.tiles), static_cast<Word>(params.query_blocks),
                 static_cast<Word>(params.paired_tiles), gridDim.x, blockIdx.x) {}

  STROBE_DEVICE void run() {
    SlotFiller<kTileSlots> slots(control_.tiles);
    const Word tiles = config::kVariableLength ? params_.order[params_.sequences].first
                                               : static_cast<Word>(params_.tiles);
    Word index = kUnequal ? unequal_.first() : blockIdx.x;
    for (bool more = true; more; index = after(index, more)) {
      more = index < tiles;
      const int slot = slots.begin();
      if (more)
        plan_tile(item_at(index), slot);
      else
        control_.tile[slot] = {};
      ptx::arrive(slots.barrier());
      slots.end();
    }
  }

 private:
  /// Whether tiles come in an order that makes up for their different lengths.
  static constexpr bool kThereAndBack = config::kTileOrder == TileOrder::there_and_back;
  static constexpr bool kUnequal = config::kTileOrder == TileOrder::in_pairs || kThereAndBack;
  using UnequalTiles = Either<kThereAndBack, TilesThereAndBack, PairedTiles>;

  STROBE_DEVICE Word after(Word index, bool more) const {
    if constexpr (kAsksForTiles) {
      return more ? gridDim.x + atomicAdd(params_.next_tile, 1U) : 0;
    } else if constexpr (kUnequal) {
      return unequal_.after(index);
    } else {
      return index + gridDim.x;
    }
  }

  /// What follows from the mask is found out here, ahead of those who compute.
  STROBE_DEVICE void plan_tile(const WorkItem& item, int slot) {
    const Sequence sequence = sequence_at<config::kVariableLength>(params_, item.sequence);
    const Mask mask = mask_of(params_, sequence);
    const int first = item.block * kBlockQueries;
    const int end = smaller(first + kBlockQueries, sequence.length_q);
    const Blocks blocks = mask.blocks<config::kBlockKeys>(first, end);
    // One at least, all hidden, gives rows that see nothing their result.
    const bool empty = blocks.begin >= blocks.end;
    control_.tile[slot] = {item.sequence, item.head, first, empty ? 0 : blocks.begin,
                           empty ? 1 : blocks.end};
#pragma unroll 1  // for want of registers
    for (int i = 0; i < config::kWarpgroups; ++i) {
      const int query = first + i * kWarpgroupRows;
      control_.visible[slot][i] = mask.blocks<config::kBlockKeys>(query, query + kWarpgroupRows);
    }
  }

  STROBE_DEVICE WorkItem item_at(Word index) {
    const Schedule schedule = {params_.query_blocks, params_.heads, params_.sequences,
                               params_.heads_per_section};
    if constexpr (kUnequal) {
      const auto [block, head] = unequal_.place_of(index);
      return schedule.item_of(block, head);
    } else if constexpr (!config::kVariableLength) {
      return schedule.item<config::kLastQueriesFirst, 1>(index);
    } else {
      while (index >= params_.order[place_ + 1].first) ++place_;  // indices only grow
      const SequenceTiles tiles = params_.order[place_];
      const Sequence sequence = sequence_at<true>(params_, tiles.sequence);
      const Schedule its = schedule.of_one_sequence(ceil_div(sequence.length_q, kBlockQueries));
      WorkItem item = its.item<config::kLastQueriesFirst, 1>(index - tiles.first);
      item.sequence = tiles.sequence;
      return item;
    }
  }

  Control& control_;
  const Params& params_;
  UnequalTiles unequal_;
  int place_ = 0;  ///< in the order of packed sequences
};

/// Every warpgroup has slots of its own for its queries.
class QueryLoader {
 public:
  STROBE_DEVICE QueryLoader(const Shared& shared, const TileMaps& maps, const Params& params)
      : shared_(shared), maps_(maps), params_(params) {}

  STROBE_DEVICE void run() const {
    TileReader tiles(shared_.control());
    SlotTurn<config::kQuerySlots> turn;
    for (Tile tile; tiles.next(tile); turn.next()) {
      const int first = sequence_of(params_, tile).first_q + tile.first_query;
#pragma unroll
      for (int i = 0; i < config::kWarpgroups; ++i) {
        shared_.control().queries[i].begin(turn);
        QueryHeads{}.start(shared_.queries(turn.slot(), i), maps_,
                           box_origin(tile, first + i * kWarpgroupRows, tile.head), tile.head,
                           full(turn, i), ptx::CachePolicy::evict_first);
      }
    }
  }

 private:
  using Turn = SlotTurn<config::kQuerySlots>;

  STROBE_DEVICE Word full(const Turn& turn, int warpgroup) const {
    return ptx::shared_address(&shared_.control().queries[warpgroup].full[turn.slot()]);
  }

  const Shared& shared_;
  const TileMaps& maps_;
  const Params& params_;
};

/// The blocks of a bias that are added to the scores of a block of keys.
class BiasLoader {
 public:
  STROBE_DEVICE BiasLoader(const Shared& shared, const TensorMap& map, const Params& params)
      : shared_(shared), map_(map), params_(params) {}

  STROBE_DEVICE void load(const Tile& tile, int block, int slot, Word barrier) const {
    const RowStrides& strides = params_.bias_strides;
    BoxOrigin origin = {{block * config::kBlockKeys, 0, strides.head == 0 ? 0 : tile.head,
                         strides.sequence == 0 ? 0 : tile.sequence}};
    if constexpr (config::kBiasPerQuery) origin.at[1] = tile.first_query;
#pragma unroll 1  // for want of registers
    for (int i = 0; i < kBiasBlocks; ++i) {
      Bias::load(shared_.bias(slot, i), map_, origin, barrier);
      origin.at[1] += kWarpgroupRows;
    }
  }

 private:
  const Shared& shared_;
  const TensorMap& map_;
  const Params& params_;
};

/// Keys or values, block by block.
template <class BlockTile, class Heads, int slots>
class KeyLoader {
 public:
  STROBE_DEVICE KeyLoader(Control& control, SlotBarriers<slots>& barriers, Word first_slot,
                          const TileMaps& maps, const Params& params)
      : tiles_(control), filler_(barriers), first_slot_(first_slot), maps_(maps), params_(params) {}

  /// Calls load_more(tile, block, slot, barrier) for what comes with a block.
  template <class LoadMore>
  STROBE_DEVICE void run(LoadMore load_more) {
    for (Tile tile; tiles_.next(tile);) {
      const int head = tile.head / params_.heads_per_key_head;
      const int first = sequence_of(params_, tile).first_k;
      for (int block = tile.last_block(); block >= tile.first_block(); --block) {
        const int slot = filler_.begin();
        Heads{}.start(first_slot_ + slot * BlockTile::kBytes, maps_,
                      box_origin(tile, first + block * config::kBlockKeys, head), head,
                      filler_.barrier(), ptx::CachePolicy::evict_last);
        load_more(tile, block, slot, filler_.barrier());
        filler_.end();
      }
    }
  }

 private:
  TileReader tiles_;
  SlotFiller<slots> filler_;
  Word first_slot_;
  const TileMaps& maps_;
  const Params& params_;
};

}  // namespace strobe::cuda
