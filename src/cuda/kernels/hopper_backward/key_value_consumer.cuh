#pragma once

#include "kernels/hopper_backward/consumer.cuh"

namespace strobe::cuda {

/// The role of both warpgroups where there are registers for it: dk and dv of 64 keys each, and a
/// slice of dq of every block of queries. The gradients of scores cross between warpgroups for dq,
/// in shared memory; all else stays in registers. Products run while others are prepared:
///
///     scores, gradients of probabilities | probabilities
///     dv | gradients of scores
///     dq of the block before, dk | that dq to its sums
///
/// As dq is a block behind, no warpgroup waits for the other. The unit takes four or five
/// instructions ahead, and a warp that has more for it stands still: so what runs while others are
/// prepared has few and long ones, which dk and dv do. They read one operand from shared memory
/// instead of two, and leave room for what is stored there meanwhile.
class KeyValueConsumer : Consumer {
 public:
  STROBE_DEVICE KeyValueConsumer(const Shared& shared, const Params& params, int warpgroup)
      : Consumer(shared, params, warpgroup * kWarpgroupRows),
        slices_(shared, params, warpgroup),
        warpgroup_(warpgroup) {}

  STROBE_DEVICE void run(const TensorMap& dk_map, const TensorMap& dv_map) {
    begin();
    for_each_block([&](const Walk& walk) { step(walk); });
    QuerySums dq;
    start_dq(dq);
    finish_dq<0>(dq);

    meet();  // all have left the keys
    epilogue().store_values(dv_.tile[0], rows_of(shared_.values()), dv_map);
    epilogue().store_keys(dk_.tile[0], rows_of(shared_.keys()), dk_map);
    epilogue().finish();
  }

 private:
  /// Steps of dv that run already while the gradients of scores are made.
  static constexpr int kFirstSteps = config::kValuesFirst / 16;
  static_assert(!(kFirstSteps > 0 && config::kDropout), "what is dropped is known with them");

  /// The first block has none before it, and the dq that comes of scores that nobody wrote goes
  /// nowhere: a first step of its own would take registers that are not there.
  STROBE_DEVICE void begin() {
    dk_.clear();
    dv_.clear();
    if (lane_index() == 0) control_.scores.end(turn_.slot());
    take_keys(true);
  }

  /// One block of queries, and dq of the one before it.
  STROBE_DEVICE void step(const Walk& walk) {
    start_products();
    ScoreOperand probabilities;
    differentiate(probabilities, walk);
    share_gradients(score_gradients_, score_turn().after());

    QuerySums dq;
    start_dq(dq);
    finish_dv(probabilities);
    start_sums<QueryTile>(dk_.tile[0], score_gradients_, shared_.queries(queries_.slot()));
    finish_dq<1>(dq);
    finish_dk();

    tile_ = tile_of(params_, key_block(), walk);
    queries_.next();
    turn_.next();
  }

  /// Of scores, and of the gradients of probabilities.
  STROBE_DEVICE void start_products() {
    queries_.wait();
    start_scores(scores_, rows_of(shared_.keys()), shared_.queries(queries_.slot()));
    control_.douts.wait(turn_);
    start_gradients(gradients_, rows_of(shared_.values()), douts());
  }

  /// Makes both operands of what follows, and starts dv.
  STROBE_DEVICE void differentiate(ScoreOperand& probabilities, const Walk& walk) {
    control_.statistics.wait(turn_);
    ptx::wgmma_wait<1>();
    ptx::pin(scores_.tile[0]);
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    const Survivors survivors = this->survivors(walk);
    start_dv<0, kFirstSteps>(probabilities);
    ptx::wgmma_wait<kFirstSteps == 0 ? 0 : 1>();
    ptx::pin(gradients_.tile[0]);
    with_mask(walk, [&](const auto& hidden) {
      make_score_gradients(gradients_, scores_, bases(), powers(walk), survivors, hidden);
    });
    control_.statistics.release(turn_.slot());
    survivors.drop(scores_);
    start_dv<kFirstSteps, kQuerySteps>(probabilities);
    pack<Element>(score_gradients_, gradients_);
  }

  STROBE_DEVICE Word douts() const { return shared_.douts(turn_.slot()); }

  template <int first_step, int end_step>
  STROBE_DEVICE void start_dv(ScoreOperand& probabilities) {
    if constexpr (first_step < end_step) {
      pack<Element>(probabilities, scores_, first_step, end_step);
      start_sums<DoutTile, first_step, end_step>(dv_.tile[0], probabilities, douts());
    }
  }
  /// It was started before dq.
  STROBE_DEVICE void finish_dv(ScoreOperand& probabilities) {
    ptx::wgmma_wait<1>();
    ptx::pin(dv_.tile[0]);
    ptx::pin(probabilities);
    release(control_.douts, turn_.slot());
  }

  STROBE_DEVICE void finish_dk() {
    ptx::wgmma_wait<0>();
    ptx::pin(dk_.tile[0]);
    ptx::pin(score_gradients_);
    release(queries_, queries_.slot());
  }

  /// Of the block before, once all warpgroups have shared its gradients. They have different
  /// queries, or different columns.
  STROBE_DEVICE void start_dq(QuerySums& dq) const {
    const Word scores = shared_.scores(turn_.slot());
    control_.scores.wait(score_turn());
    if constexpr (Slices::kAlongRows) {
      start_query_sums(dq, scores + warpgroup_ * kWarpgroupRows * ScoreTile::kLineBytes,
                       shared_.keys());
    } else {
      start_query_sums(dq, scores, shared_.keys() + warpgroup_ * KeyTile::kPanelBytes);
    }
  }
  /// It was started before the last `pending` groups of products.
  template <int pending>
  STROBE_DEVICE void finish_dq(QuerySums& dq) {
    ptx::wgmma_wait<pending>();
    ptx::pin(dq.tile[0]);
    release(control_.scores, turn_.slot());
    if (turn_.is_first()) return;
    slices_.begin_tile(turn_.before().number());
    slices_.write(dq, tile_, warpgroup_);
    slices_.end_tile();
  }

  SliceWriter slices_;
  int warpgroup_;
  Wide tile_ = 0;     ///< where the sums of the block before lie
  Scores scores_;     ///< then probabilities
  Scores gradients_;  ///< of probabilities, then of scores
  ScoreOperand score_gradients_;
  KeySums dk_;
  ValueSums dv_;
};

}  // namespace strobe::cuda
