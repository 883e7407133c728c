#pragma once

#include "device/ptx/again.cuh"
#include "device/ptx/warpgroup.cuh"
#include "kernels/hopper_forward/epilogue.cuh"
#include "kernels/hopper_forward/products.cuh"

namespace strobe::cuda {

/// Warpgroups that start their products in turns: while one's run, the others do their softmax. Not
/// four of them with a different number of blocks each: turns keep those waiting who have more.
class Turns {
 public:
  static constexpr bool kTaken = config::kWarpgroups < 4 || !config::kLastQueriesFirst;

  STROBE_DEVICE explicit Turns(int warpgroup) : warpgroup_(warpgroup) {
    if (warpgroup == config::kWarpgroups - 1) pass();  // the first begins
  }

  STROBE_DEVICE void wait() const {
    if constexpr (kTaken) ptx::sync_threads(barrier_of(warpgroup_), kThreads);
  }
  STROBE_DEVICE void pass() const {
    if constexpr (kTaken)
      ptx::arrive_threads(barrier_of((warpgroup_ + 1) % config::kWarpgroups), kThreads);
  }
  /// Waits for the warps of the warpgroup alone, as every turn does.
  STROBE_DEVICE void gather() const {
    if constexpr (!kTaken) ptx::sync_threads(barrier_of(warpgroup_), kWarpgroupThreads);
  }

 private:
  static constexpr int kThreads = 2 * kWarpgroupThreads;  // those that wait, those that pass

  STROBE_DEVICE static int barrier_of(int warpgroup) { return 1 + warpgroup; }

  int warpgroup_;
};

/// The role of a warpgroup: 64 queries of every tile. The products of a block of keys overlap with
/// the softmax of the next:
///
///     start the scores of a block | start the output of the one before | softmax of the scores
class Consumer {
 public:
  STROBE_DEVICE Consumer(const Shared& shared, const Params& params, const TileMaps& output_maps,
                         int warpgroup)
      : shared_(shared),
        params_(params),
        output_maps_(output_maps),
        warpgroup_(warpgroup),
        turns_(warpgroup),
        tiles_(shared.control().tiles),
        softmax_(params.unit) {}

  STROBE_DEVICE void run() {
    tiles_.wait();
    if (tile().exists()) go_through_tiles();
    if (lane_index() == 0) ptx::wait_until_stores_have_read();
  }

 private:
  STROBE_DEVICE void go_through_tiles() {
    if constexpr (config::kQuerySlots == 1) {
      go_one_by_one();
    } else if constexpr (kLetsPass) {
      go_and_store_beside_scores();
    } else {
      go_over_from_tile_to_tile();
    }
  }

  /// Where the next queries take the place of the last ones.
  STROBE_DEVICE void go_one_by_one() {
    begin();
    for (;;) {
      attend();
      end(tile());
      give_queries_back();
      const bool more = next_tile();
      give_tile_back();
      if (!more) return;
      begin();
    }
  }

  /// Output leaves while the first scores of the next tile are multiplied: for warpgroups that have
  /// a different number of blocks each, whose products seldom meet.
  STROBE_DEVICE void go_and_store_beside_scores() {
    start_first();
    for (;;) {
      take_first_weights();
      attend();
      give_queries_back();
      finish_tile();
      const bool more = next_tile();
      start_first(more);
      store(tile_before(), softmax_);
      give_tile_back();
      if (!more) return finish_scores<0>();
    }
  }

  /// The last output of a tile is multiplied together with the first scores of the next.
  STROBE_DEVICE void go_over_from_tile_to_tile() {
    begin();
    for (;;) {
      attend();
      give_queries_back();
      if (!next_tile()) return end(tile_before());
      go_over();
    }
  }

  /// What is worked on, and what was before. They stay in shared memory until they are given back,
  /// for there are few registers.
  STROBE_DEVICE const Tile& tile() const { return shared_.control().tile[tiles_.slot()]; }
  STROBE_DEVICE const Tile& tile_before() const {
    return shared_.control().tile[tiles_.slot_before()];
  }
  STROBE_DEVICE bool next_tile() {
    tiles_.next();
    tiles_.wait();
    return tile().exists();
  }
  /// By every lane, for each has read it.
  STROBE_DEVICE void give_tile_back() const { tiles_.release(tiles_.slot_before()); }

  STROBE_DEVICE const SlotBarriers<config::kQuerySlots>& queries() const {
    return shared_.control().queries[warpgroup_];
  }
  /// Waits for the queries of a tile, and clears them of what came with them.
  STROBE_DEVICE void take_queries() const {
    queries().wait(query_turn());
    if constexpr (config::kShifted) {
      clear_other_heads<QueryTile, config::kDim, kColumns, config::kHeadUnit, kWarpRows>(
          shared_.queries(query_turn().slot(), warpgroup_),
          column_of_head<config::kDim, config::kHeadUnit>(tile().head),
          warp_in_group() * kWarpRows);
      ptx::fence_async_proxy();
      turns_.gather();
    }
  }
  /// Every tile has its queries.
  STROBE_DEVICE SlotTurn<config::kQuerySlots> query_turn() const {
    return SlotTurn<config::kQuerySlots>(tiles_.number());
  }
  STROBE_DEVICE const SlotBarriers<config::kKeySlots>& keys() const {
    return shared_.control().keys;
  }
  STROBE_DEVICE const SlotBarriers<config::kStages>& values() const {
    return shared_.control().values;
  }
  /// Values are multiplied a block later than keys.
  STROBE_DEVICE SlotTurn<config::kStages> value_turn() const {
    return SlotTurn<config::kStages>(turn_.number() - 1);
  }

  /// Where an operand lies. Warpgroups that take no turns have a different number of blocks each,
  /// of which the assembler makes that lanes might.
  STROBE_DEVICE static Word place(Word address) {
    if constexpr (Turns::kTaken) return address;
    return uniform_by_reduction(address);
  }

  /// If there is none, multiplies whatever lies there: around a product that is left out the
  /// assembler would let others wait for each other.
  STROBE_DEVICE void start_scores_of_block(bool exists = true) {
    // Described anew each time, for want of registers to keep the descriptions in.
    const Word queries = place(ptx::again(shared_.queries(query_turn().slot(), warpgroup_)));
    const Word block = place(shared_.keys(turn_.slot()));
    if (exists) keys().wait(turn_);
    turns_.wait();
    start_scores(scores_, queries, block);
  }
  STROBE_DEVICE void start_output_of_block() {
    const Word block = place(shared_.values(value_turn().slot()));
    values().wait(value_turn());
    start_output(output_, weights_, block);
    turns_.pass();
  }
  /// Scores were started before the last `pending` groups of products.
  template <int pending>
  STROBE_DEVICE void finish_scores() {
    ptx::wgmma_wait<pending>();
    ptx::pin(scores_.tile[0]);
  }
  /// By every warp, when the scores of a block are there. If it was the last of a tile whose output
  /// leaves from registers, its queries go with them: the next ones wait for their slot.
  STROBE_DEVICE void give_keys_back(int block) const {
    if (lane_index() != 0) return;
    keys().release(turn_.slot());
    if (config::kOutputWay == OutputWay::from_registers && block == tile().first_block())
      queries().release(query_turn().slot());
  }
  STROBE_DEVICE void finish_output() {
    ptx::wgmma_wait<0>();
    ptx::pin(output_.tile[0]);
    ptx::pin(weights_);
    if (lane_index() == 0) values().release(value_turn().slot());
  }

  STROBE_DEVICE int first_query() const { return tile().first_query + warpgroup_ * kWarpgroupRows; }
  STROBE_DEVICE int warp_query() const { return first_query() + warp_in_group() * kWarpRows; }

  /// From scores; their keys, and what is added to them, are then no longer needed.
  STROBE_DEVICE void make_logits(int block) {
    if constexpr (!config::kBias) give_keys_back(block);
    if constexpr (kMakesLogits) {
      const HeadLogits logits = logits_of(params_, tile());
      const auto first_key = static_cast<Word>(block * config::kBlockKeys);
      if constexpr (config::kBias) {
        const Bias bias{shared_.bias(turn_.slot(), config::kBiasPerQuery ? warpgroup_ : 0)};
        bias.apply(logits, scores_, warp_query(), first_key);
        __syncwarp();
        give_keys_back(block);
      } else {
        logits.apply(scores_, warp_query(), first_key);
      }
    }
  }
  /// Of a block's weights, after the sums are taken.
  STROBE_DEVICE void drop_weights(int block) {
    if constexpr (config::kDropout) {
      dropout_of(params_, tile().sequence, tile().head)
          .apply(scores_, warp_query(), static_cast<Word>(block * config::kBlockKeys));
    }
  }
  /// Sets to minus infinity what the queries do not see of a block.
  STROBE_DEVICE void hide_scores(int block) {
    const Mask mask = mask_of(params_, sequence_of(params_, tile()));
    const int query = warp_query();
    const int first_key = block * config::kBlockKeys + Scores::column_index(0);
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const KeyRange visible = mask.visible(query + Scores::row_index(r));
      const int begin = config::kWindowLeft ? visible.begin - first_key : 0;
      const int end = visible.end - first_key;
#pragma unroll
      for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (8 * c + i < begin || 8 * c + i >= end) scores_.at(r, c, i) = minus_infinity();
        }
      }
    }
  }
  /// What the warpgroup's queries see.
  STROBE_DEVICE const Blocks& visible_blocks() const {
    return shared_.control().visible[tiles_.slot()][warpgroup_];
  }

  /// Where later queries see more, the last blocks of a tile may be none of this warpgroup's: if
  /// they are no longer than what others are ahead. With a fixed reference there are many keys, and
  /// too few registers.
  static constexpr bool kLetsPass =
      config::kLastQueriesFirst && !kFixedReference &&
      (config::kWarpgroups - 1) * kWarpgroupRows >= config::kBlockKeys;

  /// The last block that is computed, one at least.
  STROBE_DEVICE int last_block() const {
    if constexpr (!kLetsPass) return tile().last_block();
    return larger(smaller(visible_blocks().end, tile().block_end) - 1, 0);
  }

  /// Gives a block of keys and values back unseen, when every lane knows that it has come: one that
  /// looks too late would mistake the next for it.
  STROBE_DEVICE void let_pass() {
    keys().wait(turn_);
    const SlotTurn<config::kStages> of_values(turn_.number());
    values().wait(of_values);
    __syncwarp();
    if (lane_index() == 0) {
      keys().release(turn_.slot());
      values().release(of_values.slot());
    }
    turn_.next();
  }

  /// Blocks after the last that is computed.
  STROBE_DEVICE void let_hidden_pass() {
    if constexpr (kLetsPass) {
      for (int left = tile().last_block() - last_block(); left > 0; --left) {
        turns_.wait();
        turns_.pass();
        let_pass();
      }
    }
  }

  /// The first scores of a tile: nothing to rescale yet. Gives their keys back.
  STROBE_DEVICE void take_first() {
    const int block = last_block();
    make_logits(block);
    if (!visible_blocks().is_full(block)) hide_scores(block);
    softmax_ = Softmax(params_.unit);
    float factor[Scores::kRows];
    softmax_.take(scores_, factor);
    drop_weights(block);
    begin_trust();
  }

  /// Where tiles come in an order that is known from the start, whoever has met a tile that the
  /// fixed reference was too low for lets it run for some tiles from their beginning: its inputs
  /// are of that kind, and multiplying again costs more. Elsewhere results would depend on who gets
  /// which tile.
  STROBE_DEVICE void begin_trust() {
    if constexpr (kLearnsFromTiles) {
      fits_ = wary_tiles_ == 0;
      if (wary_tiles_ > 0) --wary_tiles_;
    } else {
      fits_ = true;
    }
  }

  /// The scores of a block that hides nothing. Returns false, and the scores are lost, if the fixed
  /// reference is too low for them.
  STROBE_DEVICE bool take_relative_to_first(float (&factor)[Scores::kRows], bool& rescale) {
    // So far sums and output are from overflowing, also where the output's type has few exponents.
    constexpr float kLimit = config::kArithmetic == Arithmetic::fp16 ? 0x1p15F : 0x1p32F;
    // The compiler schedules one way for both better, or one for each, depending on the dims.
    if constexpr (config::kValueColumns > 64) {
      if (!fits_) rescale = softmax_.raise_references(scores_, factor);
      return softmax_.add_weights_below(scores_, kLimit, fits_);
    }
    if (fits_) return softmax_.add_weights_below(scores_, kLimit);
    rescale = softmax_.take(scores_, factor);
    return true;
  }

  static constexpr bool kLearnsFromTiles = kFixedReference && !kAsksForTiles;
  static constexpr int kWaryTiles = 7;

  /// Multiplies scores that were lost again; their keys are still there. From then on the reference
  /// runs until the end of the tile, so that this happens once.
  STROBE_DEVICE bool take_again(float (&factor)[Scores::kRows]) {
    multiply_again(scores_, shared_.queries(query_turn().slot(), warpgroup_),
                   shared_.keys(turn_.slot()));
    fits_ = false;
    if constexpr (kLearnsFromTiles) wary_tiles_ = kWaryTiles;
    return softmax_.take(scores_, factor);
  }

  STROBE_DEVICE void begin() {
    start_first();
    take_first_weights();
  }

  /// The first scores of a tile that is not gone over to. If there is no tile, of nothing.
  STROBE_DEVICE void start_first(bool exists = true) {
    if (exists) {
      let_hidden_pass();
      take_queries();
    }
    start_scores_of_block(exists);
    turns_.pass();
  }
  STROBE_DEVICE void take_first_weights() {
    finish_scores<0>();
    take_first();
    pack<Element>(weights_, scores_);
    output_.clear();
    turn_.next();
  }

  /// All blocks but the first, and the output of all but the last. Where something is hidden at one
  /// end only, the other blocks have a loop of their own; where at both, registers are too few.
  STROBE_DEVICE void attend() {
    const Blocks blocks = visible_blocks();
    int block = last_block() - 1;
    if constexpr (config::kWindowLeft) {
      const int first = tile().first_block();
      for (; block >= first; --block) step<true>(blocks, block);
    } else {
      if constexpr (config::kWindowRight) {
        // A fixed reference needs a block of which every query has seen something.
        const int running = kFixedReference ? larger(blocks.full_end - 1, 0) : blocks.full_end;
        for (; block >= running; --block) step<true>(blocks, block);
      }
      for (; block >= 0; --block) step<false>(blocks, block);
    }
    // Not by the last block, as from registers: to look for it in each takes longer.
    if (config::kOutputWay == OutputWay::by_slot && lane_index() == 0)
      queries().release(query_turn().slot());
  }

  template <bool may_hide>
  STROBE_DEVICE void step(const Blocks& blocks, int block) {
    start_scores_of_block();
    start_output_of_block();
    if constexpr (config::kQuerySlots > 1) give_queries_back();
    finish_scores<1>();
    float factor[Scores::kRows];
    bool rescale = false;
    if constexpr (kFixedReference && !may_hide) {
      const bool fits = take_relative_to_first(factor, rescale);
      // Now, for all warps must come to where products are awaited, and some may go on alone.
      finish_output();
      if (!fits) rescale = take_again(factor);
      give_keys_back(block);
    } else {
      make_logits(block);
      if (may_hide && !blocks.is_full(block)) hide_scores(block);
      rescale = softmax_.take(scores_, factor);
      drop_weights(block);
      finish_output();
    }
    pack<Element>(weights_, scores_);
    if (rescale) {
#pragma unroll
      for (int r = 0; r < Output::kRows; ++r) output_.scale_row(r, factor[r]);
    }
    turn_.next();
  }

  STROBE_DEVICE void go_over() {
    take_queries();
    start_scores_of_block();
    start_output_of_block();
    finish_scores<1>();
    Softmax softmax_done = softmax_;
    take_first();
    finish_output();
    pack<Element>(weights_, scores_);  // first, for the scores take twice the registers
    store(tile_before(), softmax_done);
    give_tile_back();
    output_.clear();
    turn_.next();
  }

  /// The output of its last block.
  STROBE_DEVICE void finish_tile() {
    turns_.wait();
    start_output_of_block();
    finish_output();
  }

  STROBE_DEVICE void end(const Tile& done) {
    finish_tile();
    store(done, softmax_);
  }

  /// By way of where its queries were, which no warp multiplies any more and which, if they have
  /// one slot, are still the present tile's; or of its own slot, once the stores before have read
  /// it.
  STROBE_DEVICE void store(const Tile& tile, Softmax& softmax) {
    turns_.gather();
    const Epilogue epilogue(params_, output_maps_, tile, warpgroup_);
    Word staging = shared_.queries(query_turn().slot_before(), warpgroup_);
    if constexpr (config::kOutputWay == OutputWay::by_slot) {
      if (lane_index() == 0) ptx::wait_until_stores_have_read();
      __syncwarp();
      staging = shared_.output(warpgroup_);
    }
    epilogue.store(output_, softmax, staging);
    storing_ = config::kOutputWay == OutputWay::by_queries;
  }

  /// The output of the tile before was staged where its queries had been: gives that slot back once
  /// the stores have read it.
  STROBE_DEVICE void give_queries_back() {
    if (!storing_) return;
    if (lane_index() == 0) ptx::wait_until_stores_have_read();
    if (kLanesGiveQueriesBack || lane_index() == 0) queries().release(query_turn().slot_before());
    __syncwarp();
    storing_ = false;
  }

  const Shared& shared_;
  const Params& params_;
  const TileMaps& output_maps_;
  int warpgroup_;
  Turns turns_;
  SlotUser<kTileSlots> tiles_;
  SlotTurn<config::kKeySlots> turn_{};  ///< of keys

  Scores scores_;
  Weights weights_;
  Output output_;
  Softmax softmax_;
  bool fits_ = true;      ///< the fixed reference, so far in this tile
  int wary_tiles_ = 0;    ///< that follow and do not rely on it
  bool storing_ = false;  ///< the output of the tile before
};

}  // namespace strobe::cuda
