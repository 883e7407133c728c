#pragma once
// From a warp's sums to its rows of the output and their LSE.

#include "device/epilogue.cuh"
#include "device/hidden_values.cuh"
#include "device/ptx/again.cuh"
#include "device/ptx/warpgroup.cuh"
#include "kernels/hopper_forward/layout.cuh"

namespace strobe::cuda {

class Epilogue {
 public:
  STROBE_DEVICE Epilogue(const Params& params, const TileMaps& maps, const Tile& tile,
                         int warpgroup)
      : params_(params),
        maps_(maps),
        tile_(tile),
        first_query_(tile.first_query + warpgroup * kWarpgroupRows + warp_in_group() * kWarpRows) {}

  /// Normalises the rows, and starts to store them, if not from registers then by way of `staging`,
  /// which is the warpgroup's. No warp waits for another. When it returns, the first lane's stores
  /// may still be reading there.
  STROBE_DEVICE void store(Output& output, Softmax& softmax, Word staging) const {
    softmax.finish();
    RowResult results[Output::kRows];
    bool wrong = normalise(output, softmax, results);
    if constexpr (kMayBeWrong) wrong = __any_sync(kAllLanes, wrong);
    if constexpr (config::kOutputWay == OutputWay::from_registers) {
      store_chunks(output);
    } else {
      store_staged(output, staging);
    }
    __syncwarp();
    store_lse(results);
    if constexpr (kMayBeWrong) {
      if (wrong) recompute(results);
    }
  }

 private:
  STROBE_DEVICE Sequence sequence() const { return sequence_of(params_, tile_); }

  STROBE_DEVICE void store_staged(Output& output, Word staging) const {
    stage<Element, OutputTile>(staging, output.tile[0]);
    // The copy unit stores it, or loads queries there next.
    if constexpr (kWholeChunks || config::kOutputWay == OutputWay::by_queries)
      ptx::fence_async_proxy();
    __syncwarp();
    const bool cut = uniform(first_query_ + kWarpRows > sequence().length_q);
    if (!kWholeChunks || (config::kVariableLength && cut)) {
      store_rows(staging);
    } else if (lane_index() == 0 && first_query_ < sequence().length_q) {
      store_boxes(staging);
    }
  }

  /// Four lanes have two columns each of every eight: each of them gathers every fourth chunk.
  STROBE_DEVICE void store_chunks(Output& output) const {
#pragma unroll
    for (int r = 0; r < Output::kRows; ++r) {
      const int query = first_query_ + Output::row_index(r);
      const bool exists = query < sequence().length_q;
      Storage* const row = output_rows() + query * params_.out_strides.row;
#pragma unroll
      for (int c = 0; c < Output::kColumnTiles; c += 4) {
        Word words[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && c + i < Output::kColumnTiles; ++i)
          words[i] = Element::pack(output.at(r, c + i, 0), output.at(r, c + i, 1));
        transpose_among_four_lanes(words);
        const int chunk = c + lane_index() % 4;
        const uint4 whole = {words[0], words[1], words[2], words[3]};
        if (exists && chunk < Output::kColumnTiles) reinterpret_cast<uint4*>(row)[chunk] = whole;
      }
    }
  }

  /// Returns whether a row came out wrong; see HiddenValues.
  STROBE_DEVICE bool normalise(Output& output, const Softmax& softmax,
                               RowResult (&results)[Output::kRows]) const {
    const float sink = sink_of(params_);
    bool wrong = false;
#pragma unroll
    for (int r = 0; r < Output::kRows; ++r) {
      results[r] = finish_row(softmax.base(r), softmax.sum(r), sink);
      const float factor =
          config::kDropout ? results[r].factor * params_.dropout_scale : results[r].factor;
      Word probe = 0;  // not if anything is not finite
#pragma unroll
      for (int c = 0; c < Output::kColumnTiles; ++c) {
        float& left = output.at(r, c, 0);
        float& right = output.at(r, c, 1);
        left *= factor;
        right *= factor;
        if constexpr (kMayBeWrong) probe = Element::probe(Element::pack(left, right), probe);
      }
      wrong = wrong || (probe != 0 && is_finite(results[r].lse));
      if constexpr (config::kShifted) wrong = wrong || has_lost_scores(results[r].lse);
      // Seldom, so asked once a warp.
      if (__any_sync(kAllLanes, results[r].empty)) clear_row_if(results[r].empty, output, r);
    }
    return wrong;
  }

  STROBE_DEVICE static void clear_row_if(bool empty, Output& output, int row) {
#pragma unroll
    for (int c = 0; c < Output::kColumnTiles; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (empty) output.at(row, c, i) = 0;
      }
    }
  }

  /// Where heads bring others: keys of these are multiplied with zeros, which is NaN if they are
  /// not finite.
  STROBE_DEVICE static bool has_lost_scores(float lse) {
    return lse != lse;
  }

  STROBE_DEVICE void store_boxes(Word staging) const {
    BoxOrigin origin = box_origin(tile_, sequence().first_q + first_query_, tile_.head);
    const Word first_row = warp_in_group() * kWarpRows;
#pragma unroll
    for (int panel = 0; panel < OutputTile::kPanels; ++panel) {
      origin.at[0] = panel * OutputTile::kPanelColumns;
      ptx::store_box(map_of_panel<OutputTile>(maps_, panel), origin,
                     staging + OutputTile::chunk_offset(first_row, panel * 8));
    }
    ptx::commit_stores();
  }

  /// Where a box would also cover rows of the next sequence, or heads are no whole chunks.
  STROBE_DEVICE void store_rows(Word staging) const {
    const int rows = larger(smaller(sequence().length_q - first_query_, kWarpRows), 0);
    // Every head has values of its own then.
    const int first_column =
        config::kShifted ? column_of_head<config::kValueDim, config::kHeadUnit>(tile_.head) : 0;
    const RowCopy<kWarpRows, 32> copy = {warp_in_group() * kWarpRows, rows, first_column,
                                         lane_index()};
    copy.store<OutputTile, config::kValueDim, kWholeChunks>(
        staging, output_rows() + first_query_ * params_.out_strides.row, params_.out_strides.row);
  }

  STROBE_DEVICE void store_lse(const RowResult (&results)[Output::kRows]) const {
    if (params_.lse == nullptr || lane_index() % 4 != 0) return;
    const RowStrides& strides = params_.lse_strides;
    float* const lse = params_.lse + tile_.sequence * strides.sequence +
                       sequence().first_q * strides.row + tile_.head * strides.head;
#pragma unroll
    for (int r = 0; r < Output::kRows; ++r) {
      const int query = first_query_ + Output::row_index(r);
      if (query < sequence().length_q) lse[query * strides.row] = results[r].lse;
    }
  }

  /// Computes rows again where values that are not finite lie behind the mask, or sums overflowed,
  /// or scores were lost.
  STROBE_DEVICE void recompute(RowResult (&results)[Output::kRows]) const {
    if (lane_index() == 0) ptx::wait_for_stores();
    __syncwarp();
    const Params& params = ptx::again(params_);
    const int key_head = tile_.head / params.heads_per_key_head;
    const auto keep_factor = [&](int query, int key) {
      if constexpr (!config::kDropout) return 1.0F;
      const Dropout dropout = dropout_of(params, tile_.sequence, tile_.head);
      return dropout.keeps(static_cast<Word>(key), query) ? params.dropout_scale : 0.0F;
    };
    const HiddenValues<Element, HeadLogits, decltype(keep_factor)> values = {
        at(params.k, params.k_strides, sequence().first_k, key_head),
        at(params.v, params.v_strides, sequence().first_k, key_head),
        params.k_strides.row,
        params.v_strides.row,
        config::kDim,
        config::kValueDim,
        logits_of(params, tile_),
        keep_factor};
    const Storage* const q = at(params.q, params.q_strides, sequence().first_q, tile_.head);
    Storage* const out = output_rows();
    for (int row = 0; row < kWarpRows; ++row) {
      float lse = __shfl_sync(kAllLanes, row < 8 ? results[0].lse : results[1].lse, row % 8 * 4);
      const int query = first_query_ + row;
      if constexpr (config::kShifted) {
        if (query < sequence().length_q && has_lost_scores(lse)) {
          lse = values.lse(q + query * params.q_strides.row, query,
                           mask_of(params, sequence()).visible(query), sink_of(params));
          if (lane_index() / 4 == row % 8) (row < 8 ? results[0] : results[1]).lse = lse;
        }
      }
      const bool skipped = query >= sequence().length_q || !is_finite(lse);
      if (__any_sync(kAllLanes, skipped)) continue;  // all or none
      values.recompute(q + query * params.q_strides.row, out + query * params.out_strides.row,
                       query, mask_of(params, sequence()).visible(query), lse);
    }
    if constexpr (config::kShifted) store_lse(results);
  }

  STROBE_DEVICE float sink_of(const Params& params) const {
    return config::kSinks ? params.sinks[tile_.head] : minus_infinity();
  }

  /// A row of the sequence and a head.
  STROBE_DEVICE const Storage* at(const void* data, const RowStrides& strides, Wide row,
                                  int head) const {
    return static_cast<const Storage*>(data) + tile_.sequence * strides.sequence +
           row * strides.row + head * strides.head;
  }
  STROBE_DEVICE Storage* output_rows() const {
    return const_cast<Storage*>(
        at(params_.out, params_.out_strides, sequence().first_q, tile_.head));
  }

  const Params& params_;
  const TileMaps& maps_;
  const Tile& tile_;
  int first_query_;  ///< of this warp
};

}  // namespace strobe::cuda
