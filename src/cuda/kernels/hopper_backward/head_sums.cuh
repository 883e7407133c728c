#pragma once
// The sums of dq of all queries of a key head, as long as they are in the second level cache: they
// are cleared when the blocks of the section before start, added to by the blocks of the head, and
// converted by the one that is done last. So nobody has to read them from memory.

#include "device/ptx/turns.cuh"
#include "kernels/hopper_backward/layout.cuh"
#include "kernels/hopper_backward/query_rows.cuh"

namespace strobe::cuda {

class HeadSums {
 public:
  STROBE_DEVICE explicit HeadSums(const Params& params) : params_(params) {
    const KeyBlock block = KeyBlock::of_this_block(params);
    head_ = block.sequence.index * (params.heads / params.heads_per_key_head) + block.head;
    block_ = block.first_key / config::kBlockKeys;
  }

  /// Clears this block's share of the sums of a head of the next section, by a warp. Blocks start
  /// in their order: so nobody waits for one that waits to be started.
  STROBE_DEVICE void clear_next() const {
    const int next = head_ + heads_of_section(params_);
    if (next >= static_cast<int>(gridDim.x) / params_.key_blocks) return;
    auto* const sums = reinterpret_cast<float4*>(sums_of(next));
    const int count = head_floats() / 4;
#pragma unroll 4
    for (int i = block_ * 32 + lane_index(); i < count; i += params_.key_blocks * 32)
      sums[i] = float4{0, 0, 0, 0};
    __syncwarp();
    if (lane_index() == 0) ptx::pass_turn(params_.cleared + next);
  }

  /// Waits until those of this head are clear; those of the first section are before the launch. By
  /// one thread.
  STROBE_DEVICE void wait_until_clear() const {
    if (head_ >= heads_of_section(params_))
      ptx::wait_for_turn(params_.cleared + head_, static_cast<Word>(params_.key_blocks));
  }

  /// A thread that adds slices has waited for all of its own. It asks at once who was last, while
  /// the others still store dk and dv.
  STROBE_DEVICE void end_adding(Control& control) const {
    ptx::show_stores();
    if (is_last(config::kSliceWriters)) control.adds_last = true;
    ptx::arrive(ptx::shared_address(&control.added));
  }

  /// Converts them if this block was the last of the head to add its own. By all that compute.
  STROBE_DEVICE void finish(const Shared& shared) const {
    bool last = false;
    if constexpr (kHandsSlicesOver) {
      ptx::wait_for_phase(ptx::shared_address(&shared.control().added), 0);
      last = shared.control().adds_last;
    } else {
      meet();
      last =
          ptx::any_of_threads(kBarrier, kThreads, threadIdx.x == kWarpgroupThreads && is_last(1));
    }
    if (!last) return;
    meet();  // nobody uses the queries in shared memory any more
    convert(shared);
  }

 private:
  /// Whether all others have added theirs, of so many in each block that are asked.
  STROBE_DEVICE bool is_last(int in_block) const {
    const int all = params_.key_blocks * in_block;
    return ptx::take_turn(params_.added + head_) + 1 == static_cast<Word>(all);
  }

  using Rows = QueryRows<Element, config::kKeyColumns, config::kDim, config::kShifted>;

  static constexpr int kThreads = kWarpgroups * kWarpgroupThreads;       ///< that compute
  static constexpr int kBarrier = 1;                                     ///< theirs
  static constexpr int kParts = config::kBlockQueries / kWarpgroupRows;  ///< of a tile

  STROBE_DEVICE static void meet() {
    ptx::sync_threads(kBarrier, kThreads);
  }

  /// 64 queries of one of the heads that share the key head.
  struct Part {
    int head;
    int first_query;
  };

  STROBE_DEVICE Part part_at(int index) const {
    const int key_heads = params_.heads / params_.heads_per_key_head;
    const int in_head = params_.query_blocks * kParts;
    return {head_ % key_heads * params_.heads_per_key_head + index / in_head,
            index % in_head * kWarpgroupRows};
  }

  STROBE_DEVICE int head_tiles() const {
    return params_.heads_per_key_head * params_.query_blocks;
  }
  STROBE_DEVICE int head_floats() const {
    return head_tiles() * Slices::kTileFloats;
  }
  STROBE_DEVICE float* sums_of(int head) const {
    return params_.dq_sums + static_cast<Wide>(head) * head_floats();
  }

  /// Every warpgroup has every second part. The next is loaded while one is stored.
  STROBE_DEVICE void convert(const Shared& shared) const {
    const int warpgroup = warp_index() / 4 - 1;
    const Word staging = shared.queries(0) + warpgroup * Rows::RowTile::kBytes;
    const int parts = head_tiles() * kParts;
    Rows rows;
    if (warpgroup < parts) rows.load(sums_of_part(warpgroup));
#pragma unroll 1
    for (int i = warpgroup; i < parts; i += kWarpgroups) {
      if (!rows.stage(staging, params_.scale)) *params_.not_finite = 1;
      if (i + kWarpgroups < parts) rows.load(sums_of_part(i + kWarpgroups));
      sync_warpgroup(warpgroup);
      store(part_at(i), staging);
      sync_warpgroup(warpgroup);
    }
  }

  STROBE_DEVICE const float* sums_of_part(int index) const {
    return sums_of(head_) + index * Rows::Sums::kFloats;
  }

  STROBE_DEVICE void store(const Part& part, Word staging) const {
    const int key_heads = params_.heads / params_.heads_per_key_head;
    const RowStrides& strides = params_.dq_strides;
    Storage* const rows = static_cast<Storage*>(params_.dq) + head_ / key_heads * strides.sequence +
                          part.first_query * strides.row + part.head * strides.head;
    Rows::store(staging, rows, strides.row, params_.seqlen_q - part.first_query, part.head);
  }

  STROBE_DEVICE static void sync_warpgroup(int warpgroup) {
    ptx::sync_threads(kBarrier + 1 + warpgroup, kWarpgroupThreads);
  }

  const Params& params_;
  int head_;   ///< of keys, in all sequences
  int block_;  ///< of its keys
};

}  // namespace strobe::cuda
