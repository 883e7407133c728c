#pragma once

#include <cstdint>

#include "cuda/driver/abi.h"
#include "cuda/kernels/configuration.h"
#include "device/head_period.cuh"
#include "strobe/problem.h"
#include "strobe/tensor.h"

// What the kernels for Hopper take: tensors that its unit copies in boxes.
namespace strobe::cuda {

inline constexpr int kPanelColumns = 64;  ///< see SwizzledTile

/// What kernels of both passes are compiled for, under the names that both have for it.
template <class Features>
Features hopper_features(const Problem& problem) {
  const Window window = problem.effective_window();
  Features features{};
  features.arithmetic = arithmetic_of(problem.dtype, false);
  features.dim = static_cast<int>(problem.dim);
  features.value_dim = static_cast<int>(problem.value_dim());
  features.window_left = window.left >= 0;
  features.window_right = window.right >= 0;
  features.variable_length = problem.varlen();
  features.softcap = problem.softcap > 0;
  features.bias = problem.bias.has_value();
  features.bias_per_query = problem.bias && problem.bias->per_query;
  features.alibi = problem.alibi;
  features.dropout = problem.dropout > 0;
  return features;
}

/// Whether the unit can copy a tensor that lies so: its rows begin at multiples of 16 bytes, and no
/// axis is broadcast, runs backwards or is empty.
bool has_boxes(const TensorView& view);

/// Whether tensors of a problem have heads that begin within chunks of 16 bytes while their rows
/// begin at chunks, if nothing lies between heads and rows. Queries and keys that are multiplied
/// with each other must begin at the same place of a chunk: so every query head has a key head.
bool has_shifted_heads(const Problem& problem);

/// Whether they have a period then, so that boxes end with heads.
bool has_head_periods(const Problem& problem, int unit = kChunkElements);

/// Whether it is better to take them so than to copy them, in tiles of so many columns. Rows that
/// are no whole sectors are loaded more slowly, again for every block of a head, while they are
/// copied once. Of wide ones fewer are loaded in the same time.
bool is_better_than_copies(std::int64_t keys, int columns);

/// Whether the unit can copy a tensor with such heads: nothing lies between them, for what comes
/// with a head must be other heads. Anything else may well be no number, which is slow.
bool has_dense_heads(const TensorView& view);

/// As tensor_map, of dense heads that may begin within chunks; see head_period.
abi::TensorMap row_map(const TensorView& view, int box_rows, int unit = kChunkElements,
                       int box_columns = kPanelColumns);

/// A bias [sequence, head, query, key] in the order of other tensors, [sequence, query, head, key].
/// If it is the same for all sequences or heads, there is one.
TensorView bias_rows(const TensorView& bias);

/// [sequence, row, head, dim], or [row, head, dim] of packed sequences, which are one; copied in
/// boxes of so many rows, which are lines of panels of a SwizzledTile.
abi::TensorMap tensor_map(const TensorView& view, int box_rows, int box_columns = kPanelColumns);

}  // namespace strobe::cuda
