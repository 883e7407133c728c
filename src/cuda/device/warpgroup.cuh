#pragma once
// What the kernels for Hopper have in common: warpgroups of 64 rows, and 16-bit operands that are
// copied by boxes, multiplied from shared memory or from registers, and staged to be stored.

#include "device/accumulator.cuh"
#include "device/arithmetic.cuh"
#include "device/element.cuh"
#include "device/ptx/again.cuh"
#include "device/ptx/mbarrier.cuh"
#include "device/ptx/tensor_copy.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/swizzled_tile.cuh"

namespace strobe::cuda {

constexpr int kWarpgroupRows = 64;
constexpr int kWarpgroupThreads = 128;
constexpr int kWarpgroupWarps = 4;
constexpr int kWarpRows = kWarpgroupRows / kWarpgroupWarps;

STROBE_DEVICE int warp_in_group() {
  return ptx::again(static_cast<int>(threadIdx.x)) % kWarpgroupThreads / 32;
}
STROBE_DEVICE bool is_first_of_warpgroup() {
  return threadIdx.x % kWarpgroupThreads == 0;
}

template <Arithmetic arithmetic>
struct ElementOf;
template <>
struct ElementOf<Arithmetic::bf16> {
  using Type = Bf16;
  static constexpr ptx::HalfType kType = ptx::HalfType::bf16;
};
template <>
struct ElementOf<Arithmetic::fp16> {
  using Type = Fp16;
  static constexpr ptx::HalfType kType = ptx::HalfType::fp16;
};

/// How the panels of a tile that may end narrow are copied.
struct TileMaps {
  TensorMap whole;
  TensorMap narrow;  ///< of the last one, if it is
};

template <class OperandTile>
STROBE_DEVICE const TensorMap& map_of_panel(const TileMaps& maps, int panel) {
  const bool is_last = panel == OperandTile::kPanels - 1;
  return OperandTile::kEndsNarrow && is_last ? maps.narrow : maps.whole;
}
template <class OperandTile>
STROBE_DEVICE const TensorMap& map_of_panel(const TensorMap& map, int /*panel*/) {
  static_assert(!OperandTile::kEndsNarrow);
  return map;
}

template <class OperandTile>
STROBE_DEVICE void prefetch_maps(const TileMaps& maps) {
  ptx::prefetch_map(maps.whole);
  if constexpr (OperandTile::kEndsNarrow) ptx::prefetch_map(maps.narrow);
}

/// Loads a tile of an operand, panel by panel: its columns from `origin`'s on.
template <class OperandTile, class Maps, int axes>
STROBE_DEVICE void load_tile(Word to, const Maps& maps, BoxAt<axes> origin, Word barrier,
                             ptx::CachePolicy policy) {
  ptx::arrive_and_expect(barrier, OperandTile::kCopiedBytes);
#pragma unroll
  for (int panel = 0; panel < OperandTile::kPanels; ++panel) {
    ptx::load_box(to + panel * OperandTile::kPanelBytes, map_of_panel<OperandTile>(maps, panel),
                  origin, barrier, policy);
    origin.at[0] += OperandTile::kPanelColumns;
  }
}

/// A left operand in registers: 64 rows of a warpgroup, 16 columns each.
template <int columns>
using RegisterOperand = Word[columns / 16][4];

/// The sums of a product lie as its next one takes them, in steps of 16 columns.
template <class Element, int tiles>
STROBE_DEVICE void pack(Word (&to)[tiles / 2][4], const Accumulator<1, tiles>& sums,
                        int first_step = 0, int end_step = tiles / 2) {
#pragma unroll
  for (int step = first_step; step < end_step; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = sums.tile[0][2 * step + i / 2];
      to[step][i] = Element::pack(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }
}

/// Brings a warpgroup's sums to its 64 rows of a tile, which begin at `rows`.
template <class Element, class OperandTile, int tiles>
STROBE_DEVICE void stage(Word rows, const float (&sums)[tiles][4]) {
  const int thread = ptx::again(static_cast<int>(threadIdx.x) % kWarpgroupThreads);
  const int row = thread / 32 * 16 + thread % 16;
#pragma unroll
  for (int step = 0; step < ceil_div(tiles, 2); ++step) {
    // Of an odd number, the last comes twice: there is room in the panel.
    const float(&left)[4] = sums[2 * step];
    const float(&right)[4] = sums[smaller(2 * step + 1, tiles - 1)];
    ptx::store_matrices(rows + OperandTile::chunk_offset(row, step / 4, 2 * step + thread / 16 % 2),
                        {Element::pack(left[0], left[1]), Element::pack(left[2], left[3]),
                         Element::pack(right[0], right[1]), Element::pack(right[2], right[3])});
  }
}

}  // namespace strobe::cuda
