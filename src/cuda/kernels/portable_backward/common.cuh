#pragma once
// What the kernels of the backward pass share: tiles, where things lie, and the way from a block of
// queries and a block of keys to probabilities and the gradients of scores.
//
// With x the logits, p the probabilities before dropout and keep its zeros and factors,
//     dp = keep ∘ dout·vᵀ        dx = p ∘ (dp - delta)        ds = dx ∘ softcap'
//     dv = (keep ∘ p)ᵀ·dout      dk = scale · dsᵀ·q           dq = scale · ds·k

#include "config.cuh"
#include "device/accumulator.cuh"
#include "device/dropout.cuh"
#include "device/epilogue.cuh"
#include "device/logits.cuh"
#include "device/mask.cuh"
#include "device/multiply.cuh"
#include "device/products.cuh"
#include "device/sequence.cuh"
#include "device/tile.cuh"
#include "kernels/portable_backward/params.cuh"

namespace strobe::cuda {

using Multiply = MultiplyOf<config::kArithmetic>::Type;
using Element = Multiply::Element;
using Storage = Element::Storage;
using Params = PortableBackwardParams;

constexpr bool kExact = config::kArithmetic == Arithmetic::fp32;
using config::kThreads;
constexpr int kElementBytes = static_cast<int>(sizeof(Storage));
using Product = Products<Multiply, config::kStepsAtOnce>;

// Whole steps of products: half ones take registers that the sums of gradients need.
constexpr int kTileDim = whole_steps(config::kDim);
constexpr int kTileValueDim = whole_steps(config::kValueDim);
using QueryTile = Tile<Storage, config::kBlockQueries, kTileDim>;
using DoutTile = Tile<Storage, config::kBlockQueries, kTileValueDim>;
using KeyTile = Tile<Storage, config::kBlockKeys, kTileDim>;
using ValueTile = Tile<Storage, config::kBlockKeys, kTileValueDim>;
using ScoreTile = Tile<Storage, config::kBlockQueries, config::kBlockKeys>;

using Mask = WindowMask<config::kWindowLeft, config::kWindowRight>;
constexpr LogitFeatures kFeatures = {config::kSoftcap, config::kBias, config::kAlibi, kExact};
using HeadLogits = Logits<kFeatures, Element>;
/// If not, the exponential takes the scale.
constexpr bool kMakesLogits = config::kSoftcap || config::kBias || config::kAlibi;

/// Warps divide a block of scores as [kScoreQueryWarps][kScoreKeyWarps]; small blocks leave some
/// idle.
constexpr int kScoreQueryWarps = config::kScoreQueryWarps;
constexpr int kScoreKeyWarps = smaller(config::kWarps / kScoreQueryWarps, config::kBlockKeys / 16);
constexpr int kScoreWarps = kScoreQueryWarps * kScoreKeyWarps;
constexpr int kScoreQueries = config::kBlockQueries / kScoreQueryWarps;
constexpr int kScoreKeys = config::kBlockKeys / kScoreKeyWarps;
using Scores = Accumulator<kScoreQueries / 16, kScoreKeys / 8>;
static_assert(kScoreQueries % 16 == 0 && kScoreKeys % 16 == 0);

/// The first row of a sequence and head.
template <class T>
STROBE_DEVICE T* rows_of(T* data, const RowStrides& strides, int sequence, Wide first_row,
                         int head) {
  return data + sequence * strides.sequence + first_row * strides.row + head * strides.head;
}
STROBE_DEVICE const Storage* rows_of(const void* data, const RowStrides& strides, int sequence,
                                     Wide first_row, int head) {
  return rows_of(static_cast<const Storage*>(data), strides, sequence, first_row, head);
}
STROBE_DEVICE Storage* rows_of(void* data, const RowStrides& strides, int sequence, Wide first_row,
                               int head) {
  return rows_of(static_cast<Storage*>(data), strides, sequence, first_row, head);
}

/// Starts to load a tile, from row `first_row` on.
template <class T, bool aligned = config::kAligned>
STROBE_DEVICE void load_tile(Word tile, const void* data, const RowStrides& strides, int sequence,
                             Wide first_row, int head, int rows, int columns) {
  const Storage* from = rows_of(data, strides, sequence, first_row, head);
  T::template load_async<kThreads, aligned>(tile, T::thread_source(from, strides.row), strides.row,
                                            rows, columns);
}

/// The workspace's row of a sequence's first query.
STROBE_DEVICE Wide workspace_row(const Params& params, const Sequence& sequence, int head) {
  const Wide first = config::kVariableLength ? static_cast<Wide>(sequence.first_q)
                                             : static_cast<Wide>(sequence.index) * params.seqlen_q;
  return head * params.rows + first;
}

STROBE_DEVICE Mask mask_of(const Params& params, const Sequence& sequence) {
  return {params.window_left, params.window_right, sequence.length_q, sequence.length_k};
}

STROBE_DEVICE HeadLogits logits_of(const Params& params, const Sequence& sequence, int head) {
  HeadLogits logits = {};
  logits.scale = params.scale;
  logits.softcap = params.softcap;
  if constexpr (config::kAlibi) {
    logits.slope = params.alibi_slopes[sequence.index * params.alibi_sequence_stride + head];
  }
  if constexpr (config::kBias) {
    logits.bias = rows_of(params.bias, params.bias_strides, sequence.index, 0, head);
    logits.bias_stride = params.bias_strides.row;
  }
  logits.length_q = sequence.length_q;
  logits.length_k = sequence.length_k;
  return logits;
}

/// Which of a lane's scores dropout lets pass.
class Survivors {
 public:
  STROBE_DEVICE Survivors(const Params& params, const Sequence& sequence, int head, int first_query,
                          Word first_key) {
    if constexpr (config::kDropout) {
      const Dropout dropout = dropout_of(params, sequence.index, head);
#pragma unroll
      for (int i = 0; i < kWords; ++i) dropped_[i] = 0;
      dropout.each_dropped<Scores>(first_query, first_key, [&](int row, int column_tile, int i) {
        const int bit = place(row, column_tile, i);
        dropped_[bit / 32] |= 1U << bit % 32;
      });
    }
  }

  STROBE_DEVICE bool contains(int row, int column_tile, int i) const {
    if constexpr (!config::kDropout) return true;
    const int bit = place(row, column_tile, i);
    return (dropped_[bit / 32] >> bit % 32 & 1) == 0;
  }

 private:
  STROBE_DEVICE static constexpr int place(int row, int column_tile, int i) {
    return (row * Scores::kColumnTiles + column_tile) * 2 + i;
  }

  static constexpr int kWords = ceil_div(Scores::kRows * Scores::kColumnTiles * 2, 32);
  Word dropped_[kWords];
};

/// Of a lane's rows. Exact probabilities are multiplied with 1 + correction.
struct LaneStatistics {
  RowStatistics row[Scores::kRows];
  float correction[kExact ? Scores::kRows : 1];

  STROBE_DEVICE LaneStatistics(const Params& params, const Sequence& sequence, int head,
                               int first_query) {
    const Wide first = workspace_row(params, sequence, head);
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const int query = first_query + Scores::row_index(r);
      const bool exists = query < sequence.length_q;
      row[r] = exists ? params.statistics[first + query] : RowStatistics{-minus_infinity(), 0.0F};
      if constexpr (kExact) correction[r] = exists ? params.corrections[first + query] : 0.0F;
    }
  }
};

/// exp(x - base). What is rounded off of the difference, and of the power of two that it becomes,
/// is not small where x is much smaller than the base, as logits are beside the LSE of a long row:
/// so both are made up for.
STROBE_DEVICE float exact_exp(float x, float base) {
  constexpr float kLog2ERest = 1.92596299e-8F;  // of log₂ e
  constexpr float kLn2 = 0.693147181F;
  const float difference = x - base;
  if (difference == minus_infinity()) return 0;
  const float rest = x - (difference + base);
  const float power = difference * kLog2E;
  const float power_rest =
      fmaf(rest, kLog2E, fmaf(difference, kLog2ERest, fmaf(difference, kLog2E, -power)));
  const float result = ptx::exp2(power);
  return fmaf(result * kLn2, power_rest, result);
}

/// `base` holds what RowStatistics says.
STROBE_DEVICE float sink_probability(float sink, float base) {
  return kExact ? exact_exp(sink, base) : ptx::exp2(fmaf(sink, kLog2E, -base));
}

/// What is differentiated: the scores, the logits that are made of them, or the probabilities.
enum class Gradient { scores, logits, probabilities };

/// A warp's part of one block of queries against one block of keys.
struct ScoreBlock {
  const Params& params;
  const Sequence& sequence;
  int head;
  int first_query;  ///< of the warp
  Word first_key;   ///< likewise

  /// Scores become probabilities as they multiply the values, but for dropout's factor; gradients
  /// of probabilities become those of logits or scores. Where `masked`, some are hidden: these
  /// become zero, and not the NaN that comes of zero times something infinite.
  ///
  /// Gradients of probabilities stay what they are, but for dropout, which the probabilities are
  /// spared then, and the correction.
  template <Gradient of, bool masked>
  STROBE_DEVICE void differentiate(Scores& scores, Scores& gradients,
                                   const LaneStatistics& statistics) const {
    const HeadLogits logits = logits_of(params, sequence, head);
    const Mask mask = mask_of(params, sequence);
    const Survivors survivors(params, sequence, head, first_query, first_key);
#pragma unroll
    for (int r = 0; r < Scores::kRows; ++r) {
      const int query = first_query + Scores::row_index(r);
      const KeyRange visible = masked ? mask.visible(query) : KeyRange{};
#pragma unroll
      for (int c = 0; c < Scores::kColumnTiles; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const Word key = first_key + Scores::column_index(c) + i;
          const bool kept = survivors.contains(r, c, i);
          float x = scores.at(r, c, i);
          float derivative = 1;
          if constexpr (kMakesLogits) x = logits(x, query, key, derivative);
          float p = probability(x, statistics.row[r].base);
          const float factor = config::kDropout ? params.dropout_scale : 1.0F;
          float gradient = kept ? gradients.at(r, c, i) * factor : 0.0F;
          if constexpr (of != Gradient::probabilities) {
            if constexpr (kExact) p = fmaf(p, statistics.correction[r], p);
            gradient = p * (gradient - statistics.row[r].delta);
            if (!kept) p = 0;
          }
          if constexpr (config::kSoftcap && of == Gradient::scores) gradient *= derivative;
          if ((masked && !visible.contains(key)) || (config::kBias && x == minus_infinity())) {
            p = gradient = 0;
          }
          scores.at(r, c, i) = p;
          gradients.at(r, c, i) = gradient;
        }
      }
    }
  }

 private:
  /// `base` holds what RowStatistics says.
  STROBE_DEVICE float probability(float x, float base) const {
    if constexpr (kExact) {
      return exact_exp(kMakesLogits ? x : x * params.scale, base);
    } else {
      return ptx::exp2(fmaf(x, kMakesLogits ? kLog2E : params.scale * kLog2E, -base));
    }
  }
};

/// The tiles of one block of queries and one block of keys.
struct ScoreOperands {
  Word queries;
  Word douts;
  Word keys;
  Word values;
};

/// Computes a warp's probabilities and gradients, see ScoreBlock. `full`: every query of the block
/// sees every key.
template <Gradient of>
STROBE_DEVICE void compute_scores(Scores& scores, Scores& gradients, const ScoreOperands& tiles,
                                  const Params& params, const Sequence& sequence, int head,
                                  int first_query, Word first_key, bool full) {
  const int query = warp_index() / kScoreKeyWarps * kScoreQueries;
  const int key = warp_index() % kScoreKeyWarps * kScoreKeys;
  const ScoreBlock block = {params, sequence, head, first_query + query,
                            first_key + static_cast<Word>(key)};
  const LaneStatistics statistics(params, sequence, head, block.first_query);
  scores.clear();
  Product::add_times_rows<QueryTile::kColumns, KeyTile::kPitch>(
      scores, LeftRows<Multiply, QueryTile::kPitch>(tiles.queries + query * QueryTile::kPitch),
      tiles.keys + key * KeyTile::kPitch);
  gradients.clear();
  Product::add_times_rows<DoutTile::kColumns, ValueTile::kPitch>(
      gradients, LeftRows<Multiply, DoutTile::kPitch>(tiles.douts + query * DoutTile::kPitch),
      tiles.values + key * ValueTile::kPitch);
  if (full) {
    block.differentiate<of, false>(scores, gradients, statistics);
  } else {
    block.differentiate<of, true>(scores, gradients, statistics);
  }
}

/// Brings a warp's scores to a tile of all.
STROBE_DEVICE void store_scores(Scores& scores, Word tile) {
  tile += warp_index() / kScoreKeyWarps * kScoreQueries * ScoreTile::kPitch +
          warp_index() % kScoreKeyWarps * kScoreKeys * kElementBytes;
#pragma unroll
  for (int r = 0; r < Scores::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kColumnTiles; ++c) {
      Element::store_pair(
          tile + Scores::row_index(r) * ScoreTile::kPitch + Scores::column_index(c) * kElementBytes,
          scores.at(r, c, 0), scores.at(r, c, 1));
    }
  }
}

/// Columns come in tiles of 8.
constexpr int kColumnGrain = 8;

/// How warps divide the columns of a tile. Where these do not divide evenly the last warps step
/// back and compute columns of the one before as well; only those from `owned` on are theirs.
template <int dim, int warps>
struct ColumnPart {
  static constexpr int kColumns = round_up(ceil_div(dim, warps), kColumnGrain);

  int first;
  int owned;

  STROBE_DEVICE explicit ColumnPart(int warp)
      : first(smaller(warp * kColumns, round_up(dim, kColumnGrain) - kColumns)),
        owned(warp * kColumns) {}

  STROBE_DEVICE Word offset() const { return static_cast<Word>(first * kElementBytes); }
  /// Of those that are owned.
  STROBE_DEVICE int end() const { return smaller(owned + kColumns, dim); }
};

/// Stores a warp's sums, whose rows begin at `to` and whose columns are `part`, by way of
/// `staging`, the warp's own.
template <class Sums, class Part>
STROBE_DEVICE void store_gradients(Sums& sums, float factor, Word staging, const Part& part,
                                   Storage* to, Wide stride, int rows, bool aligned) {
  constexpr int kPitch = Part::kColumns * kElementBytes + 16;
  static_assert(Sums::kColumnTiles * 8 == Part::kColumns);
#pragma unroll
  for (int r = 0; r < Sums::kRows; ++r) sums.scale_row(r, factor);
  store_rows<Element>(
      sums, staging, kPitch,
      {to + part.owned, stride, rows, part.end() - part.owned, aligned, part.owned - part.first});
}

}  // namespace strobe::cuda
