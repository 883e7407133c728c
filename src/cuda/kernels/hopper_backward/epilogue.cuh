#pragma once
// From a warpgroup's sums to its rows of dk and dv.

#include "kernels/hopper_backward/layout.cuh"

namespace strobe::cuda {

class Epilogue {
 public:
  /// `first_key` is the warpgroup's.
  STROBE_DEVICE Epilogue(const Params& params, const KeyBlock& block, int first_key)
      : params_(params), block_(block), first_key_(first_key) {}

  /// Starts to store the gradients of the warpgroup's keys by way of `rows`, where the keys were.
  template <int tiles>
  STROBE_DEVICE void store_keys(float (&sums)[tiles][4], Word rows, const TensorMap& map) const {
    store<KeyTile, config::kDim>(sums, params_.scale, rows, map, params_.dk, params_.dk_strides);
  }
  /// Likewise of values.
  template <int tiles>
  STROBE_DEVICE void store_values(float (&sums)[tiles][4], Word rows, const TensorMap& map) const {
    const float scale = config::kDropout ? params_.dropout_scale : 1.0F;
    store<ValueTile, config::kValueDim>(sums, scale, rows, map, params_.dv, params_.dv_strides);
  }

  /// Shared memory must be there until the stores have read it.
  STROBE_DEVICE void finish() const {
    if (is_first_of_warpgroup()) ptx::wait_until_stores_have_read();
  }

 private:
  /// Sums times `factor`. Says so if any of them is not finite.
  template <class RowTile, int dim, int tiles>
  STROBE_DEVICE void store(float (&sums)[tiles][4], float factor, Word rows, const TensorMap& map,
                           void* to, const RowStrides& strides) const {
    constexpr bool kWholeChunks = !config::kShifted && dim % kChunkElements == 0;
    float probe = 0;  // NaN if anything is not finite
#pragma unroll
    for (int i = 0; i < tiles * 4; ++i) {
      float& x = sums[i / 4][i % 4];
      x *= factor;
      probe = fmaf(x, 0.0F, probe);
    }
    if (probe != 0) *params_.not_finite = 1;
    stage<Element, RowTile>(rows, sums);
    ptx::fence_async_proxy();
    constexpr int kFirstBarrier = 2;  // one for each warpgroup
    ptx::sync_threads(kFirstBarrier + warp_index() / 4 - 1, kWarpgroupThreads);
    if (!kWholeChunks ||
        (config::kVariableLength && first_key_ + kWarpgroupRows > block_.sequence.length_k)) {
      const RowCopy<kWarpgroupRows, kWarpgroupThreads> copy = {
          0, larger(smaller(block_.sequence.length_k - first_key_, kWarpgroupRows), 0),
          config::kShifted ? column_of_head<dim>(block_.head) : 0,
          static_cast<int>(threadIdx.x) % kWarpgroupThreads};
      copy.store<RowTile, dim, kWholeChunks>(rows, block_.rows(to, strides, first_key_),
                                             strides.row);
    } else if (is_first_of_warpgroup() && first_key_ < block_.sequence.length_k) {
      store_boxes<RowTile>(rows, map);
    }
  }

  template <class RowTile>
  STROBE_DEVICE void store_boxes(Word rows, const TensorMap& map) const {
    BoxOrigin origin = block_.key_origin(first_key_);
#pragma unroll
    for (int panel = 0; panel < RowTile::kPanels; ++panel) {
      origin.at[0] = panel * RowTile::kPanelColumns;
      ptx::store_box(map, origin, rows + panel * RowTile::kPanelBytes);
    }
    ptx::commit_stores();
  }

  const Params& params_;
  KeyBlock block_;
  int first_key_;
};

}  // namespace strobe::cuda
