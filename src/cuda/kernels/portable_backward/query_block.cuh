#pragma once
// The frame of a kernel whose thread blocks have some queries of one head and go through the keys
// they see.

#include "device/schedule.cuh"
#include "device/tile_ring.cuh"
#include "kernels/portable_backward/common.cuh"

namespace strobe::cuda {

class QueryBlock {
 public:
  STROBE_DEVICE QueryBlock(const Params& params, Word memory)
      : params_(params),
        queries_(memory),
        douts_(queries_ + QueryTile::kBytes),
        gradients_(douts_ + DoutTile::kBytes),
        ring_(gradients_ + ScoreTile::kBytes) {
    const Schedule schedule = {params.blocks, params.heads, params.sequences,
                               params.heads_per_section};
    const WorkItem item = schedule.item<config::kLastQueriesFirst, 1>(blockIdx.x);
    sequence_ = sequence_at<config::kVariableLength>(params, item.sequence);
    head_ = item.head;
    const Wide first = static_cast<Wide>(item.block) * config::kBlockQueries;
    rows_ = static_cast<int>(
        larger<Wide>(0, smaller<Wide>(config::kBlockQueries, sequence_.length_q - first)));
    first_ = static_cast<int>(first);
  }

  /// None, where the sequence is shorter than the longest.
  STROBE_DEVICE int rows() const { return rows_; }
  STROBE_DEVICE int first() const { return first_; }
  STROBE_DEVICE int head() const { return head_; }
  STROBE_DEVICE const Sequence& sequence() const { return sequence_; }
  /// The first row as strides count it.
  STROBE_DEVICE Wide first_row() const { return static_cast<Wide>(sequence_.first_q) + first_; }
  /// Memory for one block of scores.
  STROBE_DEVICE Word gradients() const { return gradients_; }

  STROBE_DEVICE Blocks blocks() const {
    return mask_of(params_, sequence_).template blocks<config::kBlockKeys>(first_, first_ + rows_);
  }

  /// Calls take(probabilities, gradients) for every block of keys, in warps that have a share of
  /// the scores, and then in all warps finish(keys), with the tile of the keys. Afterwards all
  /// memory is free.
  template <Gradient of, class Take, class Finish>
  STROBE_DEVICE void for_each_block(Take take, Finish finish) const {
    const Blocks seen = blocks();
    load_tile<QueryTile>(queries_, params_.q, params_.q_strides, sequence_.index, first_row(),
                         head_, rows_, config::kDim);
    load_tile<DoutTile>(douts_, params_.dout, params_.dout_strides, sequence_.index, first_row(),
                        head_, rows_, config::kValueDim);
    Ring ring(ring_);
    for (int tile = 0; tile < Ring::kAhead; ++tile) load_keys(ring, seen.begin + tile, seen.end);
    for (int block = seen.begin; block < seen.end; ++block) {
      ring.arrived();
      load_keys(ring, block + Ring::kAhead, seen.end);
      ring.ready();
      const Word keys = ring.current();
      if (warp_index() < kScoreWarps) {
        Scores probabilities, gradients;
        compute_scores<of>(probabilities, gradients,
                           {queries_, douts_, keys, keys + KeyTile::kBytes}, params_, sequence_,
                           head_, first_, static_cast<Word>(block) * config::kBlockKeys,
                           seen.is_full(block));
        take(probabilities, gradients);
      }
      finish(keys);
      ring.next();
    }
    ptx::wait_for_all_copies();
    __syncthreads();
  }

 private:
  using Ring = TileRing<config::kTileSlots, KeyTile::kBytes + ValueTile::kBytes>;

  /// Brings keys and values to the ring.
  STROBE_DEVICE void load_keys(Ring& ring, int block, int end) const {
    if (block < end) {
      const int first = block * config::kBlockKeys;
      const Wide row = static_cast<Wide>(sequence_.first_k) + first;
      const int key_head = head_ / params_.heads_per_key_head;
      const int rows = sequence_.length_k - first;
      load_tile<KeyTile>(ring.filling(), params_.k, params_.k_strides, sequence_.index, row,
                         key_head, rows, config::kDim);
      load_tile<ValueTile>(ring.filling() + KeyTile::kBytes, params_.v, params_.v_strides,
                           sequence_.index, row, key_head, rows, config::kValueDim);
    }
    ring.filled();
  }

  const Params& params_;
  Word queries_;
  Word douts_;
  Word gradients_;
  Word ring_;
  Sequence sequence_;
  int head_;
  int first_;
  int rows_;
};

}  // namespace strobe::cuda
