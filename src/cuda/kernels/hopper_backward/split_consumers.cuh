#pragma once
// The roles of the two warpgroups where one has no registers for both dk and dv: each has all keys
// of the block, one for dk and one for dv. Both compute the scores, which is one product of six, so
// that the probabilities need not cross; the gradients of scores do, for dq.

#include "kernels/hopper_backward/consumer.cuh"

namespace strobe::cuda {

/// Of dk or dv: it has the registers of the wider one, and of them the narrower takes the first.
class SplitSums {
 public:
  STROBE_DEVICE void clear() { sums_.clear(); }
  STROBE_DEVICE auto& of_keys() { return first<KeySums::kColumnTiles>(); }
  STROBE_DEVICE auto& of_values() { return first<ValueSums::kColumnTiles>(); }

 private:
  template <int tiles>
  STROBE_DEVICE float (&first())[tiles][4] {
    return reinterpret_cast<float(&)[tiles][4]>(sums_.tile[0]);
  }

  Accumulator<1, larger(KeySums::kColumnTiles, ValueSums::kColumnTiles)> sums_;
};

/// dk, a block behind: its instructions are few and long, as what runs while others are prepared
/// should be (see KeyValueConsumer).
///
///     scores, gradients of probabilities, dk of the block before | gradients of scores
class KeyConsumer : Consumer {
 public:
  STROBE_DEVICE KeyConsumer(const Shared& shared, const Params& params, SplitSums& dk)
      : Consumer(shared, params, 0), dk_(dk) {}

  STROBE_DEVICE void sum_up() {
    dk_.clear();
    // The first block has none before it and multiplies by zero.
#pragma unroll
    for (int i = 0; i < config::kBlockQueries / 4; ++i) score_gradients_[i / 4][i % 4] = 0;
    for_each_block([&](const Walk& walk) { step(walk); });
    start_dk(slot_before());
    finish_dk<0>();
  }

 private:
  /// Whether dk has registers for its operand beside both of what becomes the next.
  static constexpr bool kHasRoom = !config::kVariableLength && !config::kDropout;

  /// One block of queries, and dk of the one before it.
  STROBE_DEVICE void step(const Walk& walk) {
    const int slot_of_dk = turn_.is_first() ? queries_.slot() : slot_before();
    queries_.wait();
    if constexpr (!kHasRoom) start_dk(slot_of_dk);
    start_scores(scores_, shared_.keys(), shared_.queries(queries_.slot()));
    if constexpr (!kHasRoom) finish_dk<1>();
    control_.douts.wait(turn_);
    start_gradients(gradients_, shared_.values(), shared_.douts(turn_.slot()));
    if constexpr (kHasRoom) start_dk(slot_of_dk);
    differentiate(walk);
    if constexpr (kHasRoom) finish_dk<0>();
    pack<Element>(score_gradients_, gradients_);
    share_gradients(score_gradients_, score_turn());
    turn_.next();
    queries_.next();
  }

  STROBE_DEVICE void differentiate(const Walk& walk) {
    control_.statistics.wait(turn_);
    ptx::wgmma_wait<kHasRoom ? 2 : 1>();
    ptx::pin(scores_.tile[0]);
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    const Survivors survivors = this->survivors(walk);
    ptx::wgmma_wait<kHasRoom ? 1 : 0>();
    ptx::pin(gradients_.tile[0]);
    release(control_.douts, turn_.slot());
    with_mask(walk, [&](const auto& hidden) {
      make_score_gradients(gradients_, scores_, bases(), powers(walk), survivors, hidden);
    });
    control_.statistics.release(turn_.slot());
  }

  STROBE_DEVICE void start_dk(int query_slot) {
    start_sums<QueryTile>(dk_.of_keys(), score_gradients_, shared_.queries(query_slot));
  }
  /// It was started before the last `pending` groups of products.
  template <int pending>
  STROBE_DEVICE void finish_dk() {
    ptx::wgmma_wait<pending>();
    ptx::pin(dk_.of_keys());
    ptx::pin(score_gradients_);
    if (!turn_.is_first()) release(queries_, slot_before());
  }

  Scores scores_;     ///< then probabilities
  Scores gradients_;  ///< of probabilities, then of scores
  ScoreOperand score_gradients_;
  SplitSums& dk_;
};

/// dv, and dq slice by slice:
///
///     | probabilities
///     dv, the first slice, the next | the first to its sums
///     the one after, at last the next scores | the next slice to its sums
class ValueConsumer : Consumer {
 public:
  STROBE_DEVICE ValueConsumer(const Shared& shared, const Params& params, SplitSums& dv)
      : Consumer(shared, params, 0), slices_(shared, params, 0), dv_(dv) {}

  STROBE_DEVICE void sum_up() {
    dv_.clear();
    start_next_scores();
    ptx::wgmma_wait<0>();
    ptx::pin(scores_.tile[0]);
    if constexpr (config::kInPairs) control_.partner_keys.wait({});
    Walk walk(params_, key_block());
    for (; !walk.is_last(); walk.next()) step<false>(walk);
    step<true>(walk);
  }

 private:
  /// Whether the operand of dv has registers beside two slices of dq.
  static constexpr bool kHasRoom = !config::kDropout;

  /// One block of queries, whose scores have been multiplied already.
  template <bool last>
  STROBE_DEVICE void step(const Walk& walk) {
    release(queries_, queries_.slot());
    queries_.next();
    control_.statistics.wait(turn_);
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    control_.statistics.release(turn_.slot());
    survivors(walk).drop(scores_);
    ScoreOperand probabilities;
    pack<Element>(probabilities, scores_);
    control_.douts.wait(turn_);
    start_sums<DoutTile>(dv_.of_values(), probabilities, shared_.douts(turn_.slot()));
    constexpr bool kScoresAhead = !last && !config::kBias;  // beside which they have no registers
    sum_queries<kScoresAhead>(tile_of(params_, key_block(), walk), [&] {
      ptx::pin(dv_.of_values());
      ptx::pin(probabilities);
      release(control_.douts, turn_.slot());
    });
    if constexpr (!last && !kScoresAhead) start_next_scores();
    ptx::wgmma_wait<0>();
    if constexpr (!last) ptx::pin(scores_.tile[0]);
    turn_.next();
  }

  STROBE_DEVICE void start_next_scores() {
    queries_.wait();
    start_scores(scores_, ptx::again(shared_.keys()), shared_.queries(queries_.slot()));
  }

  /// dq, to a tile of the sums. Calls finish_before() once what was started before has been
  /// multiplied. If scores go ahead, those of the next block are started with the last slice.
  template <bool scores_ahead, class Finish>
  STROBE_DEVICE void sum_queries(Wide tile, Finish finish_before) {
    wait_for_gradients();
    QuerySums dq[2];
    start_part(dq[0], 0);
    if constexpr (!kHasRoom) {
      ptx::wgmma_wait<1>();
      finish_before();
    }
#pragma unroll
    for (int part = 0; part < BlockSlices::kParts; ++part) {
      const bool is_last = part + 1 == BlockSlices::kParts;
      if (!is_last) {
        start_part(dq[(part + 1) % 2], part + 1);
      } else if constexpr (scores_ahead) {
        start_next_scores();
      }
      if (is_last && !scores_ahead) {
        ptx::wgmma_wait<0>();
      } else {
        ptx::wgmma_wait<1>();
      }
      if (kHasRoom && part == 0) finish_before();
      if (is_last) release_gradients();
      ptx::pin(dq[part % 2].tile[0]);
      if (part == 0) slices_.begin_tile(turn_.number());
      if (BlockSlices::is_half(part)) {
        slices_.write_half(dq[part % 2], tile, BlockSlices::slice(part), rank_of_block());
      } else {
        slices_.write(dq[part % 2], tile, BlockSlices::slice(part));
      }
      if (is_last) slices_.end_tile();
    }
  }

  /// Of scores, in pairs of both blocks.
  STROBE_DEVICE void wait_for_gradients() const {
    control_.scores.wait(score_turn());
    if constexpr (config::kInPairs)
      ptx::wait_for_phase(ptx::shared_address(&control_.partner_scores), score_turn().parity());
  }
  STROBE_DEVICE void release_gradients() const {
    const int slot = score_turn().slot();
    release(control_.scores, slot);
    if constexpr (config::kInPairs) {
      if (lane_index() == 0)
        ptx::arrive_in_block(ptx::shared_address(&control_.scores.empty[slot]), partner_of_block());
    }
  }

  STROBE_DEVICE void start_part(QuerySums& dq, int part) const {
    ptx::wgmma_fence();
    if (BlockSlices::is_half(part)) {
      multiply_part(reinterpret_cast<float(&)[BlockSlices::kHalfTiles][4]>(dq.tile[0]), part);
    } else {
      multiply_part(dq.tile[0], part);
    }
    ptx::wgmma_commit();
  }
  template <int tiles>
  STROBE_DEVICE void multiply_part(float (&dq)[tiles][4], int part) const {
    const int panel = BlockSlices::slice(part);
    const Word offset = BlockSlices::first_column(part) * sizeof(Storage);
    multiply_query_sums<false>(dq, shared_.scores(score_turn().slot()),
                               shared_.keys() + panel * KeyTile::kPanelBytes + offset);
    if constexpr (config::kInPairs) {
      const int partner_panel = panel - BlockSlices::first_panel();
      multiply_query_sums<true>(
          dq, shared_.partner_scores(),
          shared_.partner_keys() + partner_panel * PartnerTile::kPanelBytes + offset);
    }
  }

  SliceWriter slices_;
  Scores scores_;  ///< then probabilities
  SplitSums& dv_;
};

/// Either of them. They meet at one place in the program, as compute-sanitizer's synccheck demands.
class SplitConsumer : Consumer {
 public:
  STROBE_DEVICE SplitConsumer(const Shared& shared, const Params& params, int warpgroup)
      : Consumer(shared, params, 0), has_keys_(warpgroup == 1) {}

  STROBE_DEVICE void run(const TensorMap& dk_map, const TensorMap& dv_map) const {
    SplitSums sums;
    take_keys(has_keys_);
    if (has_keys_) {
      KeyConsumer(shared_, params_, sums).sum_up();
    } else {
      ValueConsumer(shared_, params_, sums).sum_up();
    }
    meet();  // all have left the keys and values
    if (has_keys_) {
      epilogue().store_keys(sums.of_keys(), shared_.keys(), dk_map);
    } else {
      epilogue().store_values(sums.of_values(), shared_.values(), dv_map);
    }
    epilogue().finish();
    if constexpr (config::kInPairs) ptx::sync_cluster();  // nobody arrives here any more
  }

 private:
  bool has_keys_;
};

}  // namespace strobe::cuda
