#pragma once

#include "device/ptx/again.cuh"
#include "device/ptx/warpgroup.cuh"
#include "kernels/hopper_forward/epilogue.cuh"
#include "kernels/hopper_forward/products.cuh"

namespace strobe::cuda {

/// Warpgroups that start their products in turns: while one's run, the others do their softmax.
class Turns {
 public:
  STROBE_DEVICE explicit Turns(int warpgroup) : warpgroup_(warpgroup) {
    if (config::kTakesTurns && warpgroup == config::kWarpgroups - 1) pass();  // the first begins
  }

  STROBE_DEVICE void wait() const {
    if constexpr (config::kTakesTurns) ptx::sync_threads(barrier_of(warpgroup_), kThreads);
  }
  STROBE_DEVICE void pass() const {
    if constexpr (config::kTakesTurns)
      ptx::arrive_threads(barrier_of((warpgroup_ + 1) % config::kWarpgroups), kThreads);
  }

 private:
  static constexpr int kThreads = 2 * kWarpgroupThreads;  // those that wait, those that pass

  STROBE_DEVICE static int barrier_of(int warpgroup) { return 1 + warpgroup; }

  int warpgroup_;
};

/// The role of a warpgroup: 64 queries of every tile. The products of a block of keys overlap with
/// the softmax of the next, also from the last block of a tile to the first of the one after:
///
///     start the scores of a block | start the output of the one before | softmax of the scores
class Consumer {
 public:
  STROBE_DEVICE Consumer(const Shared& shared, const Params& params, const TensorMap& output_map,
                         int warpgroup)
      : shared_(shared),
        params_(params),
        output_map_(output_map),
        warpgroup_(warpgroup),
        turns_(warpgroup),
        tiles_(shared.control().tiles),
        queries_(shared.control().queries[warpgroup]),
        keys_(shared.control().keys),
        values_(shared.control().values),
        softmax_(params.unit) {}

  STROBE_DEVICE void run() {
    Tile tile;
    if (!next_tile(tile)) return;
    begin(tile);
    for (;;) {
      attend(tile);
      if constexpr (config::kQuerySlots > 1) {
        const Tile done = tile;
        give_queries_back();
        if (!next_tile(tile)) return end(done);
        go_over(done, tile);
      } else {
        end(tile);
        give_queries_back();
        queries_.next();
        if (!next_tile(tile)) return;
        begin(tile);
      }
    }
  }

 private:
  STROBE_DEVICE bool next_tile(Tile& tile) {
    tiles_.wait();
    tile = shared_.control().tile[tiles_.slot()];
    __syncwarp();
    release(tiles_);
    tiles_.next();
    return tile.exists();
  }

  /// By every warp that is done with a slot.
  template <class Slots>
  STROBE_DEVICE void release(const Slots& slots) const {
    if (lane_index() == 0) slots.release(slots.slot());
  }

  STROBE_DEVICE void start_scores_of_block() {
    keys_.wait();
    turns_.wait();
    start_scores(scores_, shared_.queries(queries_.slot(), warpgroup_), shared_.keys(keys_.slot()));
  }
  STROBE_DEVICE void start_output_of_block() {
    values_.wait();
    start_output(output_, weights_, shared_.values(values_.slot()));
    turns_.pass();
  }
  /// Scores were started before the last `pending` groups of products.
  template <int pending>
  STROBE_DEVICE void finish_scores() {
    ptx::wgmma_wait<pending>();
    ptx::pin(scores_.tile[0]);
    release(keys_);
    keys_.next();
  }
  STROBE_DEVICE void finish_output() {
    ptx::wgmma_wait<0>();
    ptx::pin(output_.tile[0]);
    ptx::pin(weights_);
    release(values_);
    values_.next();
  }

  STROBE_DEVICE int first_query(const Tile& tile) const {
    return tile.first_query + warpgroup_ * kWarpgroupRows;
  }
  /// Sets to minus infinity what the queries do not see of a block.
  STROBE_DEVICE void hide_scores(const Tile& tile, int block) {
    const Mask mask = mask_of(params_, sequence_of(params_, tile));
    const int query = ptx::again(first_query(tile)) + warp_in_group() * 16;
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
  STROBE_DEVICE Blocks blocks_of(const Tile& tile) const {
    const int first = first_query(tile);
    return mask_of(params_, sequence_of(params_, tile))
        .blocks<config::kBlockKeys>(first, first + kWarpgroupRows);
  }

  /// The first scores of a tile: nothing to rescale yet.
  STROBE_DEVICE void take_first(const Tile& tile) {
    const int block = tile.last_block();
    if (!blocks_of(tile).is_full(block)) hide_scores(tile, block);
    softmax_ = Softmax(params_.unit);
    float factor[Scores::kRows];
    softmax_.take(scores_, factor);
  }

  /// The first tile, or any where queries have one slot only.
  STROBE_DEVICE void begin(const Tile& tile) {
    queries_.wait();
    start_scores_of_block();
    turns_.pass();
    finish_scores<0>();
    take_first(tile);
    pack(weights_, scores_);
    output_.clear();
  }

  /// All blocks but the first, and the output of all but the last. Where something is hidden at one
  /// end only, the other blocks have a loop of their own; where at both, registers are too few.
  STROBE_DEVICE void attend(const Tile& tile) {
    const Blocks blocks = blocks_of(tile);
    int block = tile.last_block() - 1;
    if constexpr (config::kWindowLeft) {
      for (; block >= tile.first_block(); --block) step<true>(tile, blocks, block);
    } else {
      if constexpr (config::kWindowRight) {
        for (; block >= blocks.full_end; --block) step<true>(tile, blocks, block);
      }
      for (; block >= 0; --block) step<false>(tile, blocks, block);
    }
  }

  template <bool may_hide>
  STROBE_DEVICE void step(const Tile& tile, const Blocks& blocks, int block) {
    start_scores_of_block();
    start_output_of_block();
    if constexpr (config::kQuerySlots > 1) give_queries_back();
    finish_scores<1>();
    if (may_hide && !blocks.is_full(block)) hide_scores(tile, block);
    float factor[Scores::kRows];
    const bool rescale = softmax_.take(scores_, factor);
    finish_output();
    pack(weights_, scores_);
    if (rescale) {
#pragma unroll
      for (int r = 0; r < Output::kRows; ++r) output_.scale_row(r, factor[r]);
    }
  }

  /// The last output of a tile together with the first scores of the next.
  STROBE_DEVICE void go_over(const Tile& done, const Tile& tile) {
    queries_.next();
    queries_.wait();
    start_scores_of_block();
    start_output_of_block();
    finish_scores<1>();
    Softmax softmax_done = softmax_;
    take_first(tile);
    finish_output();
    pack(weights_, scores_);  // first, for the scores take twice the registers
    store(done, softmax_done, slot_before());
    output_.clear();
  }

  STROBE_DEVICE void end(const Tile& done) {
    turns_.wait();
    start_output_of_block();
    finish_output();
    store(done, softmax_, queries_.slot());
    if (is_first_of_warpgroup()) ptx::wait_until_stores_have_read();
    __syncwarp();
  }

  STROBE_DEVICE void store(const Tile& tile, Softmax& softmax, int slot) {
    const Epilogue epilogue(params_, output_map_, tile, warpgroup_,
                            1 + config::kWarpgroups + warpgroup_);
    epilogue.store(output_, softmax, shared_.queries(slot, warpgroup_));
    storing_ = true;
  }

  /// Where the queries of the tile before were.
  STROBE_DEVICE int slot_before() const {
    return config::kQuerySlots - 1 - queries_.slot();
  }

  /// The output of the tile before was staged where its queries had been: gives that slot back once
  /// the stores have read it.
  STROBE_DEVICE void give_queries_back() {
    if (!storing_) return;
    if (is_first_of_warpgroup()) {
      ptx::wait_until_stores_have_read();
      queries_.release(slot_before());
    }
    __syncwarp();
    storing_ = false;
  }

  const Shared& shared_;
  const Params& params_;
  const TensorMap& output_map_;
  int warpgroup_;
  Turns turns_;
  SlotUser<kTileSlots> tiles_;
  SlotUser<config::kQuerySlots> queries_;
  SlotUser<config::kStages> keys_;
  SlotUser<config::kStages> values_;

  Scores scores_;
  Weights weights_;
  Output output_;
  Softmax softmax_;
  bool storing_ = false;  ///< the output of the tile before
};

}  // namespace strobe::cuda
