#pragma once
// What the roles of the kernel share: types, and the plan of shared memory.

#include "config.cuh"
#include "device/bias_block.cuh"
#include "device/dropout.cuh"
#include "device/head_columns.cuh"
#include "device/mask.cuh"
#include "device/sequence.cuh"
#include "device/slots.cuh"
#include "device/softmax.cuh"
#include "device/warpgroup.cuh"
#include "kernels/hopper_forward/output_way.cuh"
#include "kernels/hopper_forward/params.cuh"
#include "kernels/hopper_forward/tile_order.cuh"

namespace strobe::cuda {

using Params = HopperForwardParams;

using Element = ElementOf<config::kArithmetic>::Type;
using Storage = Element::Storage;
constexpr ptx::HalfType kHalfType = ElementOf<config::kArithmetic>::kType;

constexpr int kBlockQueries = config::kWarpgroups * kWarpgroupRows;
constexpr int kConsumerWarps = config::kWarpgroups * 4;
constexpr int kColumns = round_up(config::kKeyColumns, 16);  ///< that are multiplied
constexpr bool kWholeChunks = config::kValueDim % kChunkElements == 0 && !config::kShifted;

/// Rows that are read along their columns alone, and so end narrow where that saves memory.
template <int rows, int columns>
using RowTile = SwizzledTile<rows, columns, ends_narrow(columns)>;

using QueryTile = RowTile<kWarpgroupRows, config::kKeyColumns>;  ///< a warpgroup's
using OutputTile = RowTile<kWarpgroupRows, config::kValueColumns>;
using KeyTile = RowTile<config::kBlockKeys, config::kKeyColumns>;
using ValueTile = SwizzledTile<config::kBlockKeys, config::kValueColumns>;

/// How heads are loaded. Where they bring others, queries are cleared of these: so keys of others
/// are multiplied with zeros, and their values make columns of the output that nobody stores.
template <class BlockTile, int dim>
using BlockHeads = Either<config::kShifted, HeadsWithOthers<BlockTile, dim, config::kHeadUnit>,
                          WholeHeads<BlockTile>>;
using QueryHeads = BlockHeads<QueryTile, config::kDim>;
using KeyHeads = BlockHeads<KeyTile, config::kDim>;
using ValueHeads = BlockHeads<ValueTile, config::kValueDim>;

/// Whether lanes may read rows of the output in the slot of queries by which it is stored: then
/// each of them gives it back, else one of a warp does.
constexpr bool kLanesGiveQueriesBack =
    config::kOutputWay == OutputWay::by_queries && (!kWholeChunks || config::kVariableLength);

using Scores = Accumulator<1, config::kBlockKeys / 8>;
using Output = Accumulator<1, config::kValueColumns / 8>;
using Softmax = OnlineSoftmax<Scores::kRows, false>;
using Mask = WindowMask<config::kWindowLeft, config::kWindowRight, int>;
constexpr bool kFixedReference = config::kReference == Reference::fixed;
/// Whether output that is not finite may be wrong: because keys that a query does not see, other
/// than zeros, were multiplied all the same, or other heads' keys with zeros, or because weights
/// above 1 were.
constexpr bool kMayBeWrong = config::kWindowLeft || config::kWindowRight ||
                             config::kVariableLength || config::kBias || config::kDropout ||
                             config::kShifted || kFixedReference;

constexpr LogitFeatures kLogitFeatures = {config::kSoftcap, config::kBias, config::kAlibi, false};
using HeadLogits = Logits<kLogitFeatures, Element>;
constexpr bool kMakesLogits =
    config::kSoftcap || config::kBias || config::kAlibi || !config::kPositiveScale;
static_assert(!kFixedReference || !(kMakesLogits || config::kDropout));

/// What is added to the scores of a block of keys comes with the keys.
using Bias = BiasBlock<Element, config::kBiasPerQuery ? kWarpgroupRows : 1, config::kBlockKeys>;
constexpr int kBiasBlocks = !config::kBias ? 0 : !config::kBiasPerQuery ? 1 : config::kWarpgroups;

/// A warpgroup's share of the work has 64 of these queries.
struct alignas(16) Tile {
  int sequence;
  int head;
  int first_query;
  int block_begin;
  int block_end;  ///< 0 if there are no more tiles

  /// Blocks of keys, gone through from the last to the first: where nothing limits the window to
  /// the left, the first is known to the compiler.
  STROBE_DEVICE int first_block() const { return config::kWindowLeft ? block_begin : 0; }
  STROBE_DEVICE int last_block() const { return block_end - 1; }
  STROBE_DEVICE bool exists() const { return block_end > 0; }
};

/// Where a row lies in a tensor, whose packed sequences are one. The columns begin at 0.
STROBE_DEVICE BoxOrigin box_origin(const Tile& tile, int row, int head) {
  return {{0, row, head, config::kVariableLength ? 0 : tile.sequence}};
}

/// Tiles in shared memory: that which is worked on, and those that were handed out ahead, as few as
/// can be where blocks ask for them, lest one that has long ones keep others from its next.
constexpr bool kAsksForTiles = config::kTileOrder == TileOrder::on_demand;
constexpr int kTileSlots = kAsksForTiles ? 2 : 4;

struct Control {
  SlotBarriers<config::kQuerySlots> queries[config::kWarpgroups];
  SlotBarriers<config::kKeySlots> keys;
  SlotBarriers<config::kStages> values;
  SlotBarriers<kTileSlots> tiles;
  Tile tile[kTileSlots];
  Blocks visible[kTileSlots][config::kWarpgroups];  ///< to the queries of a tile's warpgroups

  /// By one thread.
  STROBE_DEVICE void init() {
    constexpr int kLoaders = 3;
#pragma unroll
    for (int i = 0; i < config::kWarpgroups; ++i) {
      queries[i].init(kLanesGiveQueriesBack ? kWarpgroupThreads : kWarpgroupWarps);
    }
    keys.init(kConsumerWarps, 1 + kBiasBlocks);
    values.init(kConsumerWarps);
    tiles.init(kLoaders + config::kWarpgroups * kWarpgroupThreads);
    ptx::fence_barrier_init();
  }
};

/// The plan of shared memory. It begins where the compiler knows, so that every address is a
/// constant and takes no register.
class Shared {
 public:
  STROBE_DEVICE explicit Shared(void* memory)
      : begin_(ptx::shared_address(memory)),
        control_(reinterpret_cast<Control*>(static_cast<char*>(memory) + kControl)) {}

  /// Later the output.
  STROBE_DEVICE Word queries(int slot, int warpgroup) const {
    return begin_ + (slot * config::kWarpgroups + warpgroup) * kQueryBytes;
  }
  STROBE_DEVICE Word keys(int slot) const { return begin_ + kKeys + slot * KeyTile::kBytes; }
  STROBE_DEVICE Word values(int slot) const { return begin_ + kValues + slot * ValueTile::kBytes; }
  /// Of those that came with the keys.
  STROBE_DEVICE Word bias(int slot, int block) const {
    return begin_ + kBias + (slot * kBiasBlocks + block) * Bias::Tile::kBytes;
  }
  /// Of a warpgroup, where it has one.
  STROBE_DEVICE Word output(int warpgroup) const {
    return begin_ + kOutput + warpgroup * OutputTile::kBytes;
  }
  STROBE_DEVICE Control& control() const { return *control_; }

 private:
  static constexpr int kQueryBytes = larger(QueryTile::kBytes, OutputTile::kBytes);
  static constexpr int kKeys = config::kQuerySlots * config::kWarpgroups * kQueryBytes;
  static constexpr int kValues = kKeys + config::kKeySlots * KeyTile::kBytes;
  static constexpr int kBias = kValues + config::kStages * ValueTile::kBytes;
  static constexpr int kOutput = kBias + config::kKeySlots * kBiasBlocks * Bias::Tile::kBytes;
  static constexpr int kControl =
      kOutput +
      (config::kOutputWay == OutputWay::by_slot ? config::kWarpgroups : 0) * OutputTile::kBytes;
  static_assert(kControl + sizeof(Control) <= config::kDynamicSharedBytes);

  Word begin_;
  Control* control_;
};

STROBE_DEVICE Sequence sequence_of(const Params& params, const Tile& tile) {
  return sequence_at<config::kVariableLength>(params, tile.sequence);
}

STROBE_DEVICE HeadLogits logits_of(const Params& params, const Tile& tile) {
  const Sequence sequence = sequence_of(params, tile);
  HeadLogits logits = {};
  logits.scale = params.scale;
  logits.softcap = params.softcap;
  if constexpr (config::kAlibi) {
    logits.slope = params.alibi_slopes[tile.sequence * params.alibi_sequence_stride + tile.head];
  }
  if constexpr (config::kBias) {
    const RowStrides& strides = params.bias_strides;
    logits.bias = static_cast<const Storage*>(params.bias) + tile.sequence * strides.sequence +
                  tile.head * strides.head;
    logits.bias_stride = strides.row;
  }
  logits.length_q = sequence.length_q;
  logits.length_k = sequence.length_k;
  return logits;
}

STROBE_DEVICE Mask mask_of(const Params& params, const Sequence& sequence) {
  return {params.window_left, params.window_right, sequence.length_q, sequence.length_k};
}

}  // namespace strobe::cuda
