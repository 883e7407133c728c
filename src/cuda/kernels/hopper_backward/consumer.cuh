#pragma once
// What the roles that compute have in common.

#include "device/ptx/reduction.cuh"
#include "kernels/hopper_backward/epilogue.cuh"
#include "kernels/hopper_backward/gradients.cuh"
#include "kernels/hopper_backward/products.cuh"

namespace strobe::cuda {

/// A warpgroup with 64 of the block's keys, from row `first_row` on.
class Consumer {
 protected:
  STROBE_DEVICE Consumer(const Shared& shared, const Params& params, int first_row)
      : shared_(shared),
        params_(params),
        control_(shared.control()),
        first_row_(first_row),
        first_key_(shared.key_block(params).first_key + first_row),
        queries_(shared.control().queries) {}

  /// Waits for the keys and, if `values` or what comes with them of other heads must be cleared,
  /// for the values.
  STROBE_DEVICE void take_keys(bool values) const {
    control_.keys.wait({});
    if (values || config::kShifted) control_.values.wait({});
    if constexpr (config::kShifted) {
      const int head = key_block().head;
      clear_of_others<KeyTile, config::kDim, config::kKeyColumns>(shared_.keys(), head);
      clear_of_others<ValueTile, config::kValueDim, config::kValueColumns>(shared_.values(), head);
      ptx::fence_async_proxy();
      meet();
    }
  }

  /// Calls step(walk) for every block of queries. The first is sure to be there: if the loop could
  /// be left out, the assembler would not let products run on from one step to the next.
  template <class Step>
  STROBE_DEVICE void for_each_block(Step step) const {
    Walk walk(params_, key_block());
    do {
      step(walk);
      walk.next();
    } while (!walk.done());
  }

  STROBE_DEVICE KeyBlock key_block() const { return shared_.key_block(params_); }

  /// Calls use(hidden) with what is hidden from the block of queries.
  template <class Use>
  STROBE_DEVICE void with_mask(const Walk& walk, Use use) const {
    if (walk.is_full()) {
      use(NoHiddenQueries{});
    } else {
      use(HiddenQueries(mask_of(params_, key_block().sequence), warp_key(), walk.first_query()));
    }
  }

  STROBE_DEVICE Powers powers(const Walk& walk) const {
    return {params_, key_block(), walk, warp_key(), shared_.bias(turn_.slot())};
  }

  STROBE_DEVICE Survivors survivors(const Walk& walk) const {
    return {params_, key_block(), walk, warp_key()};
  }

  STROBE_DEVICE int warp_key() const { return first_key_ + warp_in_group() * 16; }

  /// This warpgroup's rows of a tile of keys.
  STROBE_DEVICE Word rows_of(Word tile) const { return tile + first_row_ * KeyTile::kLineBytes; }

  /// By every warp that is done with a slot.
  template <class Slots>
  STROBE_DEVICE static void release(const Slots& slots, int slot) {
    if (lane_index() == 0) slots.release(slot);
  }

  /// Of the queries of the block before.
  STROBE_DEVICE int slot_before() const {
    return (queries_.slot() + config::kQuerySlots - 1) % config::kQuerySlots;
  }

  /// Waits for all consumers.
  STROBE_DEVICE static void meet() {
    constexpr int kBarrier = 1;
    ptx::sync_threads(kBarrier, kWarpgroups * kWarpgroupThreads);
  }

  STROBE_DEVICE ScoreTurn score_turn() const { return ScoreTurn(turn_.number()); }

  /// Of the queries; their deltas follow.
  STROBE_DEVICE Word bases() const { return shared_.statistics(turn_.slot()); }

  /// The gradients of scores to where all warpgroups find them, a row for each query.
  STROBE_DEVICE void share_gradients(const ScoreOperand& gradients, ScoreTurn turn) const {
    const int thread = ptx::again(static_cast<int>(threadIdx.x) % kWarpgroupThreads);
    const int lane = thread % 32;
    const int chunk = first_row_ / 8 + thread / 32 * 2 + lane / 8 % 2;
    const Word to =
        shared_.scores(turn.slot()) + ScoreTile::chunk_offset(lane / 16 * 8 + lane % 8, chunk);
    control_.scores.begin(turn);
#pragma unroll
    for (int step = 0; step < config::kBlockQueries / 16; ++step) {
      ptx::store_matrices_transposed(to + step * 16 * ScoreTile::kLineBytes, gradients[step]);
    }
    ptx::fence_async_proxy();
    __syncwarp();
    if (lane_index() == 0) control_.scores.end(turn.slot());
  }

  STROBE_DEVICE Epilogue epilogue() const {
    return {params_, key_block(), first_key_};
  }

  /// By all warps that compute, each some rows.
  template <class RowTile, int dim, int columns>
  STROBE_DEVICE static void clear_of_others(Word tile, int head) {
    constexpr int kRows = config::kBlockKeys / (kWarpgroups * kWarpgroupWarps);
    clear_other_heads<RowTile, dim, round_up(columns, 16), kChunkElements, kRows>(
        tile, column_of_head<dim>(head), (warp_index() - kWarpgroupWarps) * kRows);
  }

  const Shared& shared_;
  const Params& params_;
  Control& control_;
  int first_row_;
  int first_key_;
  SlotUser<config::kQuerySlots> queries_;
  SlotTurn<kStages> turn_{};  ///< of dout, statistics and scores
};

/// Adds slices of dq to the sums, or hands them to the one who does.
class SliceWriter {
 public:
  STROBE_DEVICE SliceWriter(const Shared& shared, const Params& params, int writer)
      : shared_(shared),
        params_(params),
        slots_(shared.control().slices[writer]),
        writer_(writer) {}

  /// Waits for the turn at the `number`th tile of this block of keys, if there are turns.
  STROBE_DEVICE void begin_tile(Word number) const {
    if constexpr (kTakesTurns) turns().wait(SlotTurn<1>(number));
  }
  STROBE_DEVICE void end_tile() const {
    if constexpr (kTakesTurns) {
      __syncwarp();
      if (lane_index() == 0) turns().release(0);
    }
  }

  /// A slice of a tile of the sums.
  STROBE_DEVICE void write(const QuerySums& dq, Wide tile, int slice) {
    if constexpr (kHandsSlicesOver) {
      hand_over(dq, Slices::column_tiles(slice));
    } else {
      add(dq, tile * Slices::kTileFloats + Slices::first(slice), Slices::column_tiles(slice));
    }
  }
  /// The first or the second half of its columns, which are the first of `dq`.
  STROBE_DEVICE void write_half(const QuerySums& dq, Wide tile, int slice, int half) const {
    constexpr int kTiles = BlockSlices::kHalfTiles;
    add(dq, tile * Slices::kTileFloats + Slices::first(slice) + half * Rows::offset(kTiles, 0),
        kTiles);
  }

 private:
  using Rows = Slices::Rows;

  STROBE_DEVICE void hand_over(const QuerySums& dq, int tiles) {
    const Word to = shared_.slice(writer_, slots_.begin()) + Rows::offset(0, thread()) * 4;
#pragma unroll
    for (int c = 0; c < QuerySums::kColumnTiles; ++c) {
      if (c >= tiles) continue;
      const float(&sums)[4] = dq.tile[0][c];
      ptx::store_chunk(to + Rows::offset(c, 0) * 4,
                       {__float_as_uint(sums[0]), __float_as_uint(sums[1]),
                        __float_as_uint(sums[2]), __float_as_uint(sums[3])});
    }
    ptx::fence_async_proxy();
    __syncwarp();
    if (lane_index() == 0) ptx::arrive(slots_.barrier());
    slots_.end();
  }

  STROBE_DEVICE void add(const QuerySums& dq, Wide first, int tiles) const {
    float* const to = params_.dq_sums + first + Rows::offset(0, thread());
#pragma unroll
    for (int c = 0; c < QuerySums::kColumnTiles; ++c) {
      if (c >= tiles) continue;
      const float(&sums)[4] = dq.tile[0][c];
      ptx::add_four(to + Rows::offset(c, 0), sums[0], sums[1], sums[2], sums[3]);
    }
  }

  STROBE_DEVICE static int thread() {
    return ptx::again(static_cast<int>(threadIdx.x) % kWarpgroupThreads);
  }

  STROBE_DEVICE const SlotBarriers<1>& turns() const {
    return shared_.control().turns[writer_];
  }

  const Shared& shared_;
  const Params& params_;
  SlotFiller<kSliceBarriers> slots_;
  int writer_;
};

}  // namespace strobe::cuda
