#pragma once

#include "cuda/driver/abi.h"
#include "cuda/jit/architecture.h"
#include "strobe/problem.h"
#include "strobe/tensor.h"

// What the kernels for Hopper take: tensors that its unit copies in boxes.
namespace strobe::cuda {

/// Whether they are made for the problem on such a device, whichever pass it is.
bool is_for_hopper(const Problem& problem, const jit::Architecture& architecture);

/// Whether the unit can copy a tensor that lies so: its rows begin at multiples of 16 bytes, and no
/// axis is broadcast or runs backwards.
bool has_boxes(const TensorView& view);

/// [sequence, row, head, dim], copied in boxes of so many rows of 64 elements.
abi::TensorMap tensor_map(const TensorView& view, int box_rows);

}  // namespace strobe::cuda
