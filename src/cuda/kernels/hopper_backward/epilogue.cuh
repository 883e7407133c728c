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
  /// values. Says so if any of them is not finite.
  STROBE_DEVICE void store(KeySums& sums, float factor, Word rows, const TensorMap& map) const {
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
    if (!is_first_of_warpgroup() || first_key_ >= params_.seqlen_k) return;
#pragma unroll
    for (int panel = 0; panel < KeyTile::kPanels; ++panel) {
      ptx::store_box(map,
                     {{panel * KeyTile::kPanelColumns, first_key_, block_.head, block_.sequence}},
                     rows + panel * KeyTile::kPanelBytes);
    }
    ptx::commit_stores();
  }

  /// Shared memory must be there until the stores have read it.
  STROBE_DEVICE void finish() const {
    if (is_first_of_warpgroup()) ptx::wait_until_stores_have_read();
  }

 private:
  const Params& params_;
  KeyBlock block_;
  int first_key_;
};

}  // namespace strobe::cuda
