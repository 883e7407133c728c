#pragma once
// The roles of the first warpgroup: they load ahead of those who compute, and add what these have
// computed of dq to its sums.

#include "device/ptx/turns.cuh"
#include "kernels/hopper_backward/head_sums.cuh"

namespace strobe::cuda {

/// A thread, for the keys and values of the block.
STROBE_DEVICE void load_keys(const Shared& shared, const Params& params, const TensorMap& key_map,
                             const TensorMap& value_map) {
  const KeyBlock block = shared.key_block(params);
  const BoxOrigin first = block.key_origin(block.first_key);
  Control& control = shared.control();
  KeyHeads{}.start(shared.keys(), key_map, first, block.head, SlotFiller<1>(control.keys).barrier(),
                   ptx::CachePolicy::evict_first);
  ValueHeads{}.start(shared.values(), value_map, first, block.head,
                     SlotFiller<1>(control.values).barrier(), ptx::CachePolicy::evict_first);
}

/// Loads the columns of the other block's keys of which this one makes dq. What comes with them of
/// other heads makes columns of dq that nobody stores.
STROBE_DEVICE void load_partner_keys(const Shared& shared, const Params& params,
                                     const TensorMap& key_map) {
  const KeyBlock block = shared.key_block(params);
  const BoxOrigin head =
      block.key_origin(block.first_key_together() + partner_of_block() * config::kBlockKeys);
  auto origin = [&] {
    if constexpr (config::kShifted)
      return shifted_origin<config::kDim>(block.head, head);
    else
      return head;
  }();
  origin.at[0] += BlockSlices::first_panel() * PartnerTile::kPanelColumns;
  load_tile<PartnerTile>(shared.partner_keys(), key_map, origin,
                         SlotFiller<1>(shared.control().partner_keys).barrier(),
                         ptx::CachePolicy::evict_first);
}

/// A thread, for queries and dout.
class QueryLoader {
 public:
  STROBE_DEVICE QueryLoader(const Shared& shared, const Params& params)
      : shared_(shared),
        params_(params),
        block_(shared.key_block(params)),
        queries_(shared.control().queries),
        douts_(shared.control().douts) {}

  STROBE_DEVICE void run(const TensorMap& query_map, const TensorMap& dout_map) {
    for (Walk walk(params_, block_); !walk.done(); walk.next()) {
      load(QueryHeads{}, queries_, shared_.queries(queries_.slot()), query_map, walk);
      load(DoutHeads{}, douts_, shared_.douts(douts_.slot()), dout_map, walk);
    }
  }

 private:
  template <class Heads, class Filler>
  STROBE_DEVICE void load(const Heads& heads, Filler& filler, Word to, const TensorMap& map,
                          const Walk& walk) const {
    filler.begin();
    const int head = walk.head(params_, block_);
    heads.start(to, map, block_.query_origin(walk.first_query(), head), head, filler.barrier(),
                ptx::CachePolicy::evict_last);
    filler.end();
  }

  const Shared& shared_;
  const Params& params_;
  KeyBlock block_;
  SlotFiller<config::kQuerySlots> queries_;
  SlotFiller<kStages> douts_;
};

/// A warp, for the statistics of queries, which may begin anywhere in memory, and for what is added
/// to their scores.
class StatisticsLoader {
 public:
  STROBE_DEVICE StatisticsLoader(const Shared& shared, const Params& params,
                                 const TensorMap& bias_map)
      : shared_(shared), params_(params), bias_map_(bias_map) {}

  STROBE_DEVICE void run() const {
    const KeyBlock block = shared_.key_block(params_);
    const auto [index, first_q, first_k, length_q, length_k] = block.sequence;
    const RowStatistics* const sequence =
        params_.statistics +
        (config::kVariableLength ? first_q : static_cast<Wide>(index) * length_q);
    SlotFiller<kStages> slots(shared_.control().statistics);
    for (Walk walk(params_, block); !walk.done(); walk.next()) {
      load(shared_.statistics(slots.begin()), sequence + walk.head(params_, block) * params_.rows,
           walk.first_query(), length_q);
      if (config::kBias && lane_index() == 0) load_bias(block, walk, slots);
      ptx::arrive(slots.barrier());  // every lane for what it stored
      slots.end();
    }
  }

 private:
  /// Queries past the end are as those that see nothing.
  STROBE_DEVICE static void load(Word to, const RowStatistics* from, int first_query, int end) {
#pragma unroll
    for (int i = lane_index(); i < config::kBlockQueries; i += 32) {
      const int query = first_query + i;
      const RowStatistics row = query < end ? from[query] : RowStatistics{-minus_infinity(), 0.0F};
      ptx::store_word(to + i * 4, __float_as_uint(row.base));
      ptx::store_word(to + Shared::kDeltas + i * 4, __float_as_uint(row.delta));
    }
  }

  STROBE_DEVICE void load_bias(const KeyBlock& block, const Walk& walk,
                               const SlotFiller<kStages>& slots) const {
    const RowStrides& strides = params_.bias_strides;
    Bias::load(shared_.bias(slots.slot()).begin, bias_map_,
               {{block.first_key, config::kBiasPerQuery ? walk.first_query() : 0,
                 strides.head == 0 ? 0 : walk.head(params_, block),
                 strides.sequence == 0 ? 0 : block.sequence.index}},
               slots.barrier());
  }

  const Shared& shared_;
  const Params& params_;
  const TensorMap& bias_map_;
};

/// A thread, where two thread blocks with keys that follow each other make dq together: each has
/// half of its columns, for the keys of both, so that half as much is added to the sums in memory.
/// Gradients of scores are sent to the other block as soon as they have been shared in this one.
/// There is no room for the next before both have multiplied them.
class ScoreSender {
 public:
  STROBE_DEVICE ScoreSender(const Shared& shared, const Params& params)
      : shared_(shared), params_(params) {}

  STROBE_DEVICE void run() const {
    const KeyBlock block = shared_.key_block(params_);
    const Control& control = shared_.control();
    const Word received = ptx::shared_address(&control.partner_scores);
    ScoreTurn turn;
    for (Walk walk(params_, block); !walk.done(); walk.next()) {
      if (!turn.is_first()) ptx::wait_for_phase(received, turn.before().parity());
      ptx::arrive_and_expect(received, ScoreTile::kBytes);
      control.scores.wait(turn);
      ptx::copy_to_block(shared_.partner_scores(), partner_of_block(), shared_.scores(turn.slot()),
                         ScoreTile::kBytes, received);
      turn.next();
    }
  }

 private:
  const Shared& shared_;
  const Params& params_;
};

/// The turn of a block of keys to add to a tile of dq, where that must be the same in every run: in
/// the order in which blocks start, so none waits for one that waits to be started.
class TileTurn {
 public:
  /// Of the slices that one of the block's warpgroups adds.
  STROBE_DEVICE TileTurn(const Params& params, const KeyBlock& block, const Walk& walk, int writer)
      : count_(params.turns + tile_of(params, block, walk) * kTileWriters +
               writer * kBlocksTogether + rank_of_block()),
        before_(static_cast<Word>(blocks_before(params, block, walk))) {}

  STROBE_DEVICE void wait() const { ptx::wait_for_turn(count_, before_); }
  STROBE_DEVICE void pass() const { ptx::pass_turn(count_); }

 private:
  /// That add to the same queries first, as far as they are not worked on together.
  STROBE_DEVICE static int blocks_before(const Params& params, const KeyBlock& block,
                                         const Walk& walk) {
    constexpr int kKeys = kBlocksTogether * config::kBlockKeys;
    const int index = block.first_key / kKeys;
    if constexpr (!config::kWindowLeft && !config::kWindowRight) return index;
    const int first = walk.first_query();
    const int end = smaller(first + config::kBlockQueries, block.sequence.length_q);
    const Blocks seen = mask_of(params, block.sequence).blocks<kKeys>(first, end);
    return config::kWindowRight ? seen.end - 1 - index : index - seen.begin;
  }

  unsigned* count_;
  Word before_;
};

/// A thread for each warpgroup that computes dq: adds its slices to the sums.
class SliceAdder {
 public:
  STROBE_DEVICE SliceAdder(const Shared& shared, const Params& params, int writer)
      : shared_(shared), params_(params), writer_(writer) {}

  STROBE_DEVICE void run() const {
    const KeyBlock block = shared_.key_block(params_);
    SlotUser<kSliceBarriers> slots(shared_.control().slices[writer_]);
    if constexpr (config::kFinishes) HeadSums(params_).wait_until_clear();
    for (Walk walk(params_, block); !walk.done(); walk.next()) {
      float* const sums = params_.dq_sums + tile_of(params_, block, walk) * Slices::kTileFloats;
      if constexpr (config::kDeterministic) {
        const TileTurn turn(params_, block, walk, writer_);
        turn.wait();
        add(slots, sums);
        ptx::wait_for_stores();
        turn.pass();
      } else {
        add(slots, sums);
      }
    }
    if constexpr (config::kFinishes) {
      ptx::wait_for_stores();
      HeadSums(params_).end_adding(shared_.control());
    }
  }

 private:
  static constexpr int kSlicesOfWriter = Slices::kCount / config::kSliceWriters;

  STROBE_DEVICE void add(SlotUser<kSliceBarriers>& slots, float* tile) const {
#pragma unroll
    for (int i = 0; i < kSlicesOfWriter; ++i) {
      const int slice = writer_ * kSlicesOfWriter + i;
      slots.wait();
      ptx::add_floats(tile + Slices::first(slice), shared_.slice(writer_, slots.slot()),
                      Slices::floats(slice) * 4);
      ptx::commit_stores();
      ptx::wait_until_stores_have_read();
      slots.release(slots.slot());
      slots.next();
    }
  }

  const Shared& shared_;
  const Params& params_;
  int writer_;
};

/// A thread for each warpgroup that adds slices of dq itself: waits for its turns, and passes them
/// once it has added.
class TurnKeeper {
 public:
  STROBE_DEVICE TurnKeeper(const Shared& shared, const Params& params, int writer)
      : shared_(shared), params_(params), writer_(writer) {}

  STROBE_DEVICE void run() const {
    const KeyBlock block = shared_.key_block(params_);
    SlotFiller<1> slots(shared_.control().turns[writer_]);
    for (Walk walk(params_, block); !walk.done(); walk.next()) {
      const TileTurn turn(params_, block, walk, writer_);
      turn.wait();
      ptx::arrive(slots.barrier());
      slots.end();
      slots.begin();  // the warpgroup has added
      turn.pass();
    }
  }

 private:
  const Shared& shared_;
  const Params& params_;
  int writer_;
};

}  // namespace strobe::cuda
