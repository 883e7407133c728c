// Flash attention, forward, for every GPU since sm_80. A thread block has some queries of one head
// and goes through the keys they see, block by block; a warp has rows of its own and needs nothing
// of the other warps but their share of the loading.

#include "config.cuh"
#include "device/accumulator.cuh"
#include "device/dropout.cuh"
#include "device/epilogue.cuh"
#include "device/hidden_values.cuh"
#include "device/logits.cuh"
#include "device/mask.cuh"
#include "device/multiply.cuh"
#include "device/products.cuh"
#include "device/ptx/again.cuh"
#include "device/schedule.cuh"
#include "device/sequence.cuh"
#include "device/softmax.cuh"
#include "device/tile.cuh"
#include "device/tile_ring.cuh"
#include "kernels/portable_forward/params.cuh"

namespace strobe::cuda {
namespace {

using Multiply = MultiplyOf<config::kArithmetic>::Type;
using Element = Multiply::Element;
using Storage = Element::Storage;
using Params = PortableForwardParams;

constexpr bool kExact = config::kArithmetic == Arithmetic::fp32;
using config::kPartDim;
using config::kThreads;
constexpr int kWarpRows = config::kBlockQueries / config::kWarps;
constexpr int kRowTiles = kWarpRows / 16;
constexpr int kStep = Multiply::kStep;

using QueryTile = Tile<Storage, config::kBlockQueries, config::kDim>;
using KeyTile = Tile<Storage, config::kBlockKeys, config::kDim>;
using ValueTile = Tile<Storage, config::kBlockKeys, kPartDim>;
using OutputTile = Tile<Storage, config::kBlockQueries, kPartDim>;
using Ring = TileRing<config::kTileSlots, larger(KeyTile::kBytes, ValueTile::kBytes)>;

using Scores = Accumulator<kRowTiles, config::kBlockKeys / 8>;
using Output = Accumulator<kRowTiles, ceil_div(kPartDim, 8)>;
using Softmax = OnlineSoftmax<Scores::kRows, kExact>;
using Mask = WindowMask<config::kWindowLeft, config::kWindowRight>;

constexpr LogitFeatures kFeatures = {config::kSoftcap, config::kBias, config::kAlibi, kExact};
using HeadLogits = Logits<kFeatures, Element>;
/// Whether logits are made before the softmax. If not, it takes the scale into its powers, which
/// it can only do if that is positive.
constexpr bool kMakesLogits =
    config::kSoftcap || config::kBias || config::kAlibi || !config::kPositiveScale;

static_assert(kWarpRows % 16 == 0 && config::kBlockKeys % 16 == 0);
static_assert(!config::kQueriesInRegisters ||
              config::kStepsUnrolled * kStep >= QueryTile::kColumns);

/// Where the queries', keys' and values' first rows of one head lie, and all that masks, logits and
/// dropout need to know of it.
struct Head {
  Sequence sequence;
  int index;
  const Storage* q;
  const Storage* k;
  const Storage* v;
  Storage* out;
  Mask mask;
  int value_columns;

  STROBE_DEVICE Head(const Params& params, const WorkItem& item)
      : sequence(sequence_at<config::kVariableLength>(params, item.sequence)),
        index(item.head),
        q(at(params.q, params.q_strides, sequence.first_q, index)),
        k(at(params.k, params.k_strides, sequence.first_k, index / params.heads_per_key_head)),
        v(at(params.v, params.v_strides, sequence.first_k, index / params.heads_per_key_head) +
          item.value_part * kPartDim),
        out(const_cast<Storage*>(at(params.out, params.out_strides, sequence.first_q, index)) +
            item.value_part * kPartDim),
        mask{params.window_left, params.window_right, sequence.length_q, sequence.length_k},
        value_columns(config::kValueParts == 1
                          ? kPartDim
                          : smaller(kPartDim, config::kValueDim - item.value_part * kPartDim)) {}

  STROBE_DEVICE HeadLogits logits(const Params& params) const {
    HeadLogits logits = {};
    logits.scale = params.scale;
    logits.softcap = params.softcap;
    if constexpr (config::kAlibi) {
      logits.slope = params.alibi_slopes[sequence.index * params.alibi_sequence_stride + index];
    }
    if constexpr (config::kBias) {
      logits.bias = at(params.bias, params.bias_strides, 0, index);
      logits.bias_stride = params.bias_strides.row;
    }
    logits.length_q = sequence.length_q;
    logits.length_k = sequence.length_k;
    return logits;
  }

  STROBE_DEVICE Dropout dropout(const Params& params) const {
    return dropout_of(params, sequence.index, index);
  }

 private:
  STROBE_DEVICE const Storage* at(const void* data, const RowStrides& strides, Wide row,
                                  Wide head) const {
    return static_cast<const Storage*>(data) + sequence.index * strides.sequence +
           row * strides.row + head * strides.head;
  }
};

/// Brings keys and values to the ring, in the order in which they are used.
class Loader {
 public:
  STROBE_DEVICE Loader(const Params& params, const Head& head, int end)
      : k_(KeyTile::thread_source(head.k, params.k_strides.row)),
        v_(ValueTile::thread_source(head.v, params.v_strides.row)),
        k_stride_(params.k_strides.row),
        v_stride_(params.v_strides.row),
        keys_(head.sequence.length_k),
        value_columns_(head.value_columns),
        end_(end) {}

  /// The first tiles, as many as the ring loads ahead.
  template <int tile = 0>
  STROBE_DEVICE void start(Ring& ring, int block) const {
    if constexpr (tile < Ring::kAhead) {
      load<tile>(ring, block);
      start<tile + 1>(ring, block);
    }
  }

  /// Tile `tile` from a block on, whose keys are tile 0 and whose values tile 1; then come the next
  /// block's keys, and so on.
  template <int tile>
  STROBE_DEVICE void load(Ring& ring, int block) const {
    block += tile / 2;
    if (block < end_) {
      const int first = block * config::kBlockKeys;
      if constexpr (tile % 2 == 0) {
        KeyTile::load_async<kThreads, config::kAligned>(ring.filling(), k_ + first * k_stride_,
                                                        k_stride_, keys_ - first, config::kDim);
      } else {
        ValueTile::load_async<kThreads, config::kAligned>(ring.filling(), v_ + first * v_stride_,
                                                          v_stride_, keys_ - first, value_columns_);
      }
    }
    ring.filled();
  }

 private:
  const Storage* k_;
  const Storage* v_;
  Wide k_stride_;
  Wide v_stride_;
  int keys_;
  int value_columns_;
  int end_;  ///< the last block's successor
};

/// A warp's queries as the left operand, in registers where they fit, else read at every step.
class Queries : public LeftRows<Multiply, QueryTile::kPitch> {
 public:
  STROBE_DEVICE explicit Queries(Word tile)
      : LeftRows(tile + warp_index() * kWarpRows * QueryTile::kPitch) {}

  STROBE_DEVICE void keep() {
    if constexpr (config::kQueriesInRegisters) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) kept_[step][r] = LeftRows::get(step, r);
      }
    }
  }

  STROBE_DEVICE Multiply::Left get(int step, int row_tile) const {
    if constexpr (config::kQueriesInRegisters) return kept_[step][row_tile];
    return LeftRows::get(step, row_tile);
  }

 private:
  static constexpr int kSteps = QueryTile::kColumns / kStep;

  Multiply::Left kept_[config::kQueriesInRegisters ? larger(kSteps, 1) : 1][kRowTiles];
};

STROBE_DEVICE void multiply_queries_and_keys(Scores& scores, const Queries& queries, Word keys) {
  scores.clear();
  Products<Multiply, config::kStepsUnrolled>::add_times_rows<QueryTile::kColumns, KeyTile::kPitch>(
      scores, queries, keys);
}

STROBE_DEVICE void add_weighted_values(Output& output, const Scores& weights, Word values) {
  constexpr int kAllSteps = config::kBlockKeys / kStep;
  Products<Multiply, kAllSteps>::add_times_columns<config::kBlockKeys, ValueTile::kPitch>(
      output, values, [&](int step, int row_tile) {
        return Multiply::left_from_sums(&weights.tile[row_tile][step * kStep / 8]);
      });
}

/// Sets to minus infinity what a warp's rows from `first_query` do not see.
STROBE_DEVICE void hide(Scores& scores, const Mask& mask, int first_query, Word first_key) {
#pragma unroll
  for (int r = 0; r < Scores::kRows; ++r) {
    const KeyRange visible = mask.visible(first_query + Scores::row_index(r));
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!visible.contains(first_key + Scores::column_index(c) + i)) {
          scores.at(r, c, i) = minus_infinity();
        }
      }
    }
  }
}

/// Goes through the blocks of keys.
STROBE_DEVICE void attend(Output& output, Softmax& softmax, const Queries& queries, Ring& ring,
                          const Loader& loader, const Params& params, const Head& head,
                          const Blocks& blocks, int first_query) {
  output.clear();
  for (int block = blocks.begin; block < blocks.end; ++block) {
    const Word first_key = static_cast<Word>(block) * config::kBlockKeys;
    Scores scores;
    ring.arrived();
    loader.load<Ring::kAhead>(ring, block);
    multiply_queries_and_keys(scores, queries, ring.current());
    ring.next();

    if constexpr (kMakesLogits)
      head.logits(params).apply(scores, ptx::again(first_query), first_key);
    if (!blocks.is_full(block)) hide(scores, head.mask, ptx::again(first_query), first_key);
    softmax.take(scores, output);
    if constexpr (config::kDropout) {
      head.dropout(params).apply(scores, ptx::again(first_query), first_key);
    }

    ring.arrived();
    loader.load<Ring::kAhead + 1>(ring, block);
    add_weighted_values(output, scores, ring.current());
    ring.next();
  }
}

/// Computes a warp's rows again where values that are not finite lie behind the mask.
STROBE_DEVICE void recompute_rows(const RowResult (&results)[Output::kRows], const Params& params,
                                  const Head& head, int first_query) {
  const auto keep_factor = [&](int query, int key) {
    if constexpr (!config::kDropout) return 1.0F;
    return head.dropout(params).keeps(static_cast<Word>(key), query) ? params.dropout_scale : 0.0F;
  };
  const HiddenValues<Element, HeadLogits, decltype(keep_factor)> values = {head.k,
                                                                           head.v,
                                                                           params.k_strides.row,
                                                                           params.v_strides.row,
                                                                           config::kDim,
                                                                           head.value_columns,
                                                                           head.logits(params),
                                                                           keep_factor};
#pragma unroll
  for (int r = 0; r < Output::kRows; ++r) {
    for (int group = 0; group < 8; ++group) {
      const float lse = __shfl_sync(kAllLanes, results[r].lse, group * 4);
      const int query = first_query + r * 8 + group;
      if (query >= head.sequence.length_q || !is_finite(lse)) continue;
      values.recompute(head.q + query * params.q_strides.row,
                       head.out + query * params.out_strides.row, query, head.mask.visible(query),
                       lse);
    }
  }
}

STROBE_DEVICE void store(Output& output, Softmax& softmax, Word staging, const Params& params,
                         const Head& head, const WorkItem& item, int first_query) {
  softmax.finish();
  const float sink = config::kSinks ? params.sinks[head.index] : minus_infinity();
  RowResult results[Output::kRows];
  bool wrong = false;
#pragma unroll
  for (int r = 0; r < Output::kRows; ++r) {
    results[r] = finish_row(softmax.base(r), softmax.sum(r), sink);
    const float factor =
        config::kDropout ? results[r].factor * params.dropout_scale : results[r].factor;
    float probe = 0;  // NaN if anything is not finite
#pragma unroll
    for (int c = 0; c < Output::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = output.at(r, c, i);
        x = results[r].empty ? 0.0F : x * factor;
        probe = fmaf(x, 0.0F, probe);
      }
    }
    wrong = wrong || (probe != 0 && is_finite(results[r].lse));
    const int query = first_query + Output::row_index(r);
    if (params.lse != nullptr && item.value_part == 0 && lane_index() % 4 == 0 &&
        query < head.sequence.length_q) {
      const RowStrides& strides = params.lse_strides;
      params.lse[head.sequence.index * strides.sequence +
                 (static_cast<Wide>(head.sequence.first_q) + query) * strides.row +
                 head.index * strides.head] = results[r].lse;
    }
  }
  const Wide stride = params.out_strides.row;
  store_rows<Element>(
      output, staging, OutputTile::kPitch,
      {head.out + first_query * stride, stride, head.sequence.length_q - first_query,
       head.value_columns, params.out_aligned != 0});
  if (__any_sync(kAllLanes, wrong)) {
    __syncwarp();
    recompute_rows(results, params, head, first_query);
  }
}

STROBE_DEVICE WorkItem work_item(const Params& params, int index) {
  const Schedule schedule = {params.query_blocks, params.heads, params.sequences,
                             params.heads_per_section};
  return schedule.item<config::kLastQueriesFirst, config::kValueParts>(static_cast<Word>(index));
}

/// The first query of a warp.
STROBE_DEVICE int warp_query(const WorkItem& item) {
  return item.block * config::kBlockQueries + warp_index() * kWarpRows;
}

/// Loads the queries and the first keys and values, and goes through the keys. False if there are
/// no queries, as sequences may be shorter than the longest.
STROBE_DEVICE bool compute(Output& output, Softmax& softmax, Word query_tile,
                           const Params& params) {
  const WorkItem item = work_item(params, static_cast<int>(blockIdx.x));
  const Head head(params, item);
  const Wide first_query = static_cast<Wide>(item.block) * config::kBlockQueries;
  const int rows =
      static_cast<int>(smaller<Wide>(config::kBlockQueries, head.sequence.length_q - first_query));
  if (rows <= 0) return false;
  const Blocks blocks = head.mask.blocks<config::kBlockKeys>(static_cast<int>(first_query),
                                                             static_cast<int>(first_query) + rows);

  Ring ring(query_tile + larger(QueryTile::kBytes, OutputTile::kBytes));
  const Wide stride = params.q_strides.row;
  constexpr bool kQueriesAligned =
      config::kAligned && is_whole_chunks(config::kDim, sizeof(Storage));
  QueryTile::load_async<kThreads, kQueriesAligned>(
      query_tile, QueryTile::thread_source(head.q + first_query * stride, stride), stride, rows,
      config::kDim);
  const Loader loader(params, head, blocks.end);
  loader.start(ring, blocks.begin);
  Queries queries(query_tile);
  ring.arrived();
  queries.keep();
  attend(output, softmax, queries, ring, loader, params, head, blocks, warp_query(item));
  return true;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, config::kBlocksPerMultiprocessor)
    portable_forward(const __grid_constant__ Params params) {
  static_assert(larger(QueryTile::kBytes, OutputTile::kBytes) + Ring::kBytes <=
                config::kDynamicSharedBytes);
  extern __shared__ uint4 memory[];
  const Word query_tile = ptx::shared_address(memory);
  Output output;
  Softmax softmax(kMakesLogits ? kLog2E : params.scale * kLog2E);
  if (!compute(output, softmax, query_tile, params)) return;

  __syncthreads();  // the output takes the place of the queries
  const WorkItem item = work_item(params, ptx::again(static_cast<int>(blockIdx.x)));
  store(output, softmax, query_tile + warp_index() * kWarpRows * OutputTile::kPitch, params,
        Head(params, item), item, warp_query(item));
}

}  // namespace strobe::cuda
