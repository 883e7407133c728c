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

/// dk. Its products run while others are prepared:
///
///     scores | dk of the block before
///     gradients of probabilities | probabilities from the scores
class KeyConsumer : Consumer {
 public:
  STROBE_DEVICE KeyConsumer(const Shared& shared, const Params& params, SplitSums& dk)
      : Consumer(shared, params, 0), dk_(dk) {}

  STROBE_DEVICE void sum_up() {
    dk_.clear();
    control_.keys.wait({});
    for_each_block([&](const Walk& walk) { step(walk); });
    ptx::wgmma_wait<0>();
    finish_dk();
  }

 private:
  /// One block of queries. When it returns, dk is still being multiplied.
  STROBE_DEVICE void step(const Walk& walk) {
    const Word queries = shared_.queries(queries_.slot());
    queries_.wait();
    start_scores(scores_, shared_.keys(), queries);
    ptx::wgmma_wait<1>();
    finish_dk();
    if (turn_.is_first()) control_.values.wait({});
    control_.douts.wait(turn_);
    start_gradients(gradients_, shared_.values(), shared_.douts(turn_.slot()));
    differentiate(walk);
    pack<Element>(score_gradients_, gradients_);
    share_gradients(score_gradients_, turn_);
    start_sums<QueryTile>(dk_.of_keys(), score_gradients_, queries);
    turn_.next();
    queries_.next();
  }

  /// Once dk of the block before has been multiplied, if there was one.
  STROBE_DEVICE void finish_dk() {
    ptx::pin(dk_.of_keys());
    ptx::pin(score_gradients_);
    if (!turn_.is_first()) release(queries_, slot_before());
  }

  STROBE_DEVICE void differentiate(const Walk& walk) {
    control_.statistics.wait(turn_);
    ptx::wgmma_wait<1>();
    ptx::pin(scores_.tile[0]);
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    const Survivors survivors = this->survivors(walk);
    ptx::wgmma_wait<0>();
    ptx::pin(gradients_.tile[0]);
    release(control_.douts, turn_.slot());
    with_mask(walk, [&](const auto& hidden) {
      make_score_gradients(gradients_, scores_, bases(), powers(walk), survivors, hidden);
    });
    control_.statistics.release(turn_.slot());
  }

  Scores scores_;     ///< then probabilities
  Scores gradients_;  ///< of probabilities, then of scores
  ScoreOperand score_gradients_;
  SplitSums& dk_;
};

/// dv, and dq slice by slice: one is multiplied while the one before goes to its sums.
class ValueConsumer : Consumer {
 public:
  STROBE_DEVICE ValueConsumer(const Shared& shared, const Params& params, SplitSums& dv)
      : Consumer(shared, params, 0), slices_(shared, params, 0), dv_(dv) {}

  STROBE_DEVICE void sum_up() {
    dv_.clear();
    control_.keys.wait({});
    for_each_block([&](const Walk& walk) { step(walk); });
  }

 private:
  STROBE_DEVICE void step(const Walk& walk) {
    queries_.wait();
    start_scores(scores_, shared_.keys(), shared_.queries(queries_.slot()));
    control_.statistics.wait(turn_);
    ptx::wgmma_wait<0>();
    ptx::pin(scores_.tile[0]);
    release(queries_, queries_.slot());
    queries_.next();
    with_mask(walk, [&](const auto& hidden) {
      make_probabilities(scores_, bases(), powers(walk), hidden);
    });
    control_.statistics.release(turn_.slot());
    survivors(walk).drop(scores_);
    ScoreOperand probabilities;
    pack<Element>(probabilities, scores_);
    control_.douts.wait(turn_);
    start_sums<DoutTile>(dv_.of_values(), probabilities, shared_.douts(turn_.slot()));
    control_.scores.wait(turn_);
    QuerySums dq[2];
    start_slice(dq[0], 0);
    ptx::wgmma_wait<1>();
    ptx::pin(dv_.of_values());
    ptx::pin(probabilities);
    release(control_.douts, turn_.slot());
#pragma unroll
    for (int slice = 0; slice < Slices::kCount; ++slice) {
      if (slice + 1 < Slices::kCount) {
        start_slice(dq[(slice + 1) % 2], slice + 1);
        ptx::wgmma_wait<1>();
      } else {
        ptx::wgmma_wait<0>();
        release(control_.scores, turn_.slot());
      }
      ptx::pin(dq[slice % 2].tile[0]);
      slices_.write(dq[slice % 2], tile_of(params_, key_block(), walk), slice);
    }
    turn_.next();
  }

  STROBE_DEVICE void start_slice(QuerySums& dq, int slice) const {
    start_query_sums(dq, shared_.scores(turn_.slot()),
                     shared_.keys() + slice * KeyTile::kPanelBytes);
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
  }

 private:
  bool has_keys_;
};

}  // namespace strobe::cuda
