#pragma once

#include "kernels/hopper_backward/consumer.cuh"

namespace strobe::cuda {

/// The role of both warpgroups where there are registers for it: dk and dv of 64 keys each, and a
/// slice of dq of every block of queries. The gradients of scores cross between warpgroups for dq,
/// in shared memory; all else stays in registers. Products run while others are prepared, and to
/// have enough of them one is a block behind. Where registers suffice to keep its operand, dk:
///
///     gradients of probabilities, dk of the block before | probabilities, gradients of scores
///     dv, dq, the next scores | dq to its sums
///
/// Else dq: then no warpgroup waits for the other, and one may prepare while the other's run.
///
///     gradients of probabilities | probabilities, gradients of scores
///     dv, dq of the block before, dk, the next scores | dq to its sums
///
/// or, where not even the next scores have registers beside dq, they come after it.
class KeyValueConsumer : Consumer {
 public:
  STROBE_DEVICE KeyValueConsumer(const Shared& shared, const Params& params, int warpgroup)
      : Consumer(shared, params, warpgroup * kWarpgroupRows),
        slices_(shared, params, warpgroup),
        warpgroup_(warpgroup) {}

  STROBE_DEVICE void run(const TensorMap& dk_map, const TensorMap& dv_map) {
    begin();
    Walk walk(params_, key_block());
    for (; !walk.is_last(); walk.next()) step<false>(walk);
    step<true>(walk);
    end(walk);

    meet();  // all have left the keys
    epilogue().store_values(dv_.tile[0], rows_of(shared_.values()), dv_map);
    epilogue().store_keys(dk_.tile[0], rows_of(shared_.keys()), dk_map);
    epilogue().finish();
  }

 private:
  static constexpr bool kKeysLag = config::kKeysLag;
  static constexpr bool kQueriesLag = !kKeysLag;
  static constexpr bool kScoresLast = config::kScoresLast;
  static_assert(!(kKeysLag && kScoresLast));

  /// What lags has nothing to do at first: dk multiplies by zero, and the dq that comes of scores
  /// that nobody wrote goes nowhere.
  STROBE_DEVICE void begin() {
    dk_.clear();
    dv_.clear();
#pragma unroll
    for (int i = 0; i < config::kBlockQueries / 4; ++i) score_gradients_[i / 4][i % 4] = 0;
    if (kQueriesLag && lane_index() == 0) control_.scores.end(turn_.slot());
    control_.keys.wait({});
    start_next_scores();
    control_.values.wait({});
    ptx::wgmma_wait<0>();
    ptx::pin(scores_.tile[0]);
  }

  /// One block of queries, whose scores have been multiplied already.
  template <bool last>
  STROBE_DEVICE void step(const Walk& walk) {
    control_.douts.wait(turn_);
    start_gradients(gradients_, rows_of(shared_.values()), douts());
    if constexpr (kKeysLag) start_dk(turn_.is_first() ? queries_.slot() : slot_before());
    differentiate(walk);

    ScoreOperand probabilities;
    pack<Element>(probabilities, scores_);
    start_sums<DoutTile>(dv_.tile[0], probabilities, douts());
    if constexpr (kKeysLag) finish_dk<1>();
    pack<Element>(score_gradients_, gradients_);
    share_gradients(score_gradients_, kQueriesLag ? turn_.after() : turn_);
    QuerySums dq;
    start_dq(dq);
    ptx::wgmma_wait<1>();
    ptx::pin(dv_.tile[0]);
    ptx::pin(probabilities);
    release(control_.douts, turn_.slot());
    if constexpr (!kKeysLag) start_dk(queries_.slot());
    queries_.next();
    if constexpr (!last && !kScoresLast) start_next_scores();

    finish_dq<(kKeysLag ? 0 : 1) + (last || kScoresLast ? 0 : 1)>(dq, walk);
    turn_.next();
    if constexpr (kScoresLast) {
      finish_dk<0>();
      if constexpr (!last) start_next_scores();
    }
    ptx::wgmma_wait<0>();
    if constexpr (!last) ptx::pin(scores_.tile[0]);
    if constexpr (!kKeysLag && !kScoresLast) finish_dk<0>();
  }

  /// What lags, of the last block.
  STROBE_DEVICE void end(const Walk& last) {
    if constexpr (kKeysLag) {
      start_dk(slot_before());
      finish_dk<0>();
    } else {
      QuerySums dq;
      start_dq(dq);
      finish_dq<0>(dq, last);
    }
  }

  /// Scores become probabilities while the gradients of these are multiplied, and these become the
  /// gradients of scores.
  STROBE_DEVICE void differentiate(const Walk& walk) {
    control_.statistics.wait(turn_);
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    const Survivors survivors = this->survivors(walk);
    ptx::wgmma_wait<kKeysLag ? 1 : 0>();
    ptx::pin(gradients_.tile[0]);
    with_mask(walk, [&](const auto& hidden) {
      make_score_gradients(gradients_, scores_, bases(), powers(walk), survivors, hidden);
    });
    survivors.drop(scores_);
    control_.statistics.release(turn_.slot());
  }

  STROBE_DEVICE Word douts() const {
    return shared_.douts(turn_.slot());
  }

  STROBE_DEVICE void start_next_scores() {
    queries_.wait();
    start_scores(scores_, rows_of(shared_.keys()), shared_.queries(queries_.slot()));
  }

  STROBE_DEVICE void start_dk(int query_slot) {
    start_sums<QueryTile>(dk_.tile[0], score_gradients_, shared_.queries(query_slot));
  }
  /// It was started before the last `pending` groups of products.
  template <int pending>
  STROBE_DEVICE void finish_dk() {
    ptx::wgmma_wait<pending>();
    ptx::pin(dk_.tile[0]);
    ptx::pin(score_gradients_);
    if (!turn_.is_first()) release(queries_, slot_before());
  }

  /// Once all warpgroups have shared the gradients. They have different queries, or different
  /// columns.
  STROBE_DEVICE void start_dq(QuerySums& dq) const {
    const Word scores = shared_.scores(turn_.slot());
    control_.scores.wait(turn_);
    if constexpr (Slices::kAlongRows) {
      start_query_sums(dq, scores + warpgroup_ * kWarpgroupRows * ScoreTile::kLineBytes,
                       shared_.keys());
    } else {
      start_query_sums(dq, scores, shared_.keys() + warpgroup_ * KeyTile::kPanelBytes);
    }
  }
  template <int pending>
  STROBE_DEVICE void finish_dq(QuerySums& dq, const Walk& walk) {
    ptx::wgmma_wait<pending>();
    ptx::pin(dq.tile[0]);
    release(control_.scores, turn_.slot());
    const Wide tile = tile_of(params_, key_block(), walk);
    if (!kQueriesLag || !turn_.is_first())
      slices_.write(dq, kQueriesLag ? tile_before_ : tile, warpgroup_);
    tile_before_ = tile;
  }

  SliceWriter slices_;
  int warpgroup_;
  Wide tile_before_ = 0;  ///< where the sums of the block before lie
  Scores scores_;         ///< then probabilities
  Scores gradients_;      ///< of probabilities, then of scores
  ScoreOperand score_gradients_;
  KeySums dk_;
  ValueSums dv_;
};

}  // namespace strobe::cuda
