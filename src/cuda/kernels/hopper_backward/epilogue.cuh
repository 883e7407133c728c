#pragma once
// From a warpgroup's sums to its rows of dk and dv.

#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

class Epilogue {
 public:
  /// `first_key` is the warpgroup's.
  STROBE_DEVICE Epilogue(const Params& params, const KeyBlock& block, int first_key)
      : params_(params), block_(block), first_key_(first_key) {}

  /// Starts to store sums times `factor` by way of `rows`, the warpgroup's of what was keys or
  /// values, to `to` and what is its map. Says so if any of them is not finite.
  STROBE_DEVICE void store(KeySums& sums, float factor, Word rows, const TensorMap& map, void* to,
                           const RowStrides& strides) const {
    float probe = 0;  // NaN if anything is not finite
#pragma unroll
    for (int r = 0; r < KeySums::kRows; ++r) {
      sums.scale_row(r, factor);
#pragma unroll
      for (int c = 0; c < KeySums::kColumnTiles; ++c) {
        probe = fmaf(sums.at(r, c, 0), 0.0F, fmaf(sums.at(r, c, 1), 0.0F, probe));
      }
    }
    if (probe != 0) *params_.not_finite = 1;
    stage<Element, KeyTile>(rows, sums);
    ptx::fence_async_proxy();
    constexpr int kFirstBarrier = 2;  // one for each warpgroup
    ptx::sync_threads(kFirstBarrier + warp_index() / 4 - 1, kWarpgroupThreads);
    if (config::kVariableLength && first_key_ + kWarpgroupRows > block_.sequence.length_k) {
      store_rows(rows, block_.rows(to, strides, first_key_), strides.row);
    } else if (is_first_of_warpgroup() && first_key_ < block_.sequence.length_k) {
      store_boxes(rows, map);
    }
  }

  /// Shared memory must be there until the stores have read it.
  STROBE_DEVICE void finish() const {
    if (is_first_of_warpgroup()) ptx::wait_until_stores_have_read();
  }

 private:
  STROBE_DEVICE void store_boxes(Word rows, const TensorMap& map) const {
    BoxOrigin origin = block_.key_origin(first_key_);
#pragma unroll
    for (int panel = 0; panel < KeyTile::kPanels; ++panel) {
      origin.at[0] = panel * KeyTile::kPanelColumns;
      ptx::store_box(map, origin, rows + panel * KeyTile::kPanelBytes);
    }
    ptx::commit_stores();
  }

  /// Where a box would also cover rows of the next sequence: chunk by chunk.
  STROBE_DEVICE void store_rows(Word rows, Storage* to, Wide stride) const {
    constexpr int kChunks = config::kDim / 8;
    const int count = smaller(block_.sequence.length_k - first_key_, kWarpgroupRows);
    for (int i = static_cast<int>(threadIdx.x) % kWarpgroupThreads; i < count * kChunks;
         i += kWarpgroupThreads) {
      *reinterpret_cast<uint4*>(to + i / kChunks * stride + i % kChunks * 8) =
          ptx::load_chunk(rows + KeyTile::chunk_offset(i / kChunks, i % kChunks));
    }
  }

  const Params& params_;
  KeyBlock block_;
  int first_key_;
};

}  // namespace strobe::cuda
