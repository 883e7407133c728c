#pragma once

#include "cuda/driver/abi.h"
#include "strobe/tensor.h"

// What the kernels for Hopper take: tensors that its unit copies in boxes.
namespace strobe::cuda {

/// Whether the unit can copy a tensor that lies so: its rows begin at multiples of 16 bytes, and no
/// axis is broadcast, runs backwards or is empty.
bool has_boxes(const TensorView& view);

/// A bias [sequence, head, query, key] in the order of other tensors, [sequence, query, head, key].
/// If it is the same for all sequences or heads, there is one.
TensorView bias_rows(const TensorView& bias);

/// [sequence, row, head, dim], or [row, head, dim] of packed sequences, which are one; copied in
/// boxes of so many rows of 64 elements.
abi::TensorMap tensor_map(const TensorView& view, int box_rows);

}  // namespace strobe::cuda
