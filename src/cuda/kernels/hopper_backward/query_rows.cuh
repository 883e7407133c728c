#pragma once

#include "device/head_columns.cuh"
#include "device/swizzled_tile.cuh"
#include "kernels/hopper_backward/query_slices.cuh"

namespace strobe::cuda {

/// 64 rows of dq from their sums, by a warpgroup: sums come as threads hold them, and rows leave by
/// way of shared memory, so that both are whole lines. `shifted` if heads begin within chunks.
template <class Element, int columns, int dim, bool shifted>
class QueryRows {
 public:
  using Sums = QuerySumRows<columns>;
  using RowTile = SwizzledTile<Sums::kRows, columns>;
  using Storage = typename Element::Storage;

  STROBE_DEVICE void load(const float* sums) {
    sums += Sums::offset(0, thread());
#pragma unroll
    for (int c = 0; c < Sums::kColumnTiles; ++c) {
      const float4 four = *reinterpret_cast<const float4*>(sums + Sums::offset(c, 0));
      float(&to)[4] = sums_[c];
      to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    }
  }

  /// What was loaded, times `scale`, as rows of a tile. Returns whether all of it is finite.
  STROBE_DEVICE bool stage(Word tile, float scale) {
    float probe = 0;  // NaN if anything is not
#pragma unroll
    for (int i = 0; i < Sums::kColumnTiles * 4; ++i) {
      float& x = sums_[i / 4][i % 4];
      probe = fmaf(x, 0.0F, probe);
      x *= scale;
    }
    strobe::cuda::stage<Element, RowTile>(tile, sums_);
    return probe == 0;
  }

  /// The first `count` rows of the tile, or none.
  STROBE_DEVICE static void store(Word tile, Storage* rows, Wide stride, int count, int head) {
    constexpr bool kWholeChunks = !shifted && dim % kChunkElements == 0;
    const RowCopy<Sums::kRows, kWarpgroupThreads> copy = {0, larger(smaller(count, Sums::kRows), 0),
                                                          shifted ? column_of_head<dim>(head) : 0,
                                                          thread()};
    copy.template store<RowTile, dim, kWholeChunks>(tile, rows, stride);
  }

 private:
  STROBE_DEVICE static int thread() {
    return static_cast<int>(threadIdx.x) % kWarpgroupThreads;
  }

  float sums_[Sums::kColumnTiles][4];
};

}  // namespace strobe::cuda
