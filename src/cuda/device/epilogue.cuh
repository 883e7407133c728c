#pragma once
// From sums of weighted values to the output.

#include "device/accumulator.cuh"
#include "device/chunk.cuh"
#include "device/element.cuh"
#include "device/ptx/math.cuh"

namespace strobe::cuda {

/// How a row ends.
struct RowResult {
  float factor;  ///< from sums to the output
  float lse;     ///< natural logarithm, minus infinity if the row sees nothing
  bool empty;
};

/// `base` and `sum` as of OnlineSoftmax. A sink joins here: a logit without a value, minus infinity
/// if there is none. A row that sees no key stays empty, sink or not.
STROBE_DEVICE RowResult finish_row(float base, float sum, float sink) {
  const bool empty = base == minus_infinity() && sum == 0;  // not so if all it sees is NaN
  if (empty) return {0, minus_infinity(), true};
  const float sink_power = sink * kLog2E;
  const float top = sink_power > base ? sink_power : base;
  const float share = top == base ? 1.0F : ptx::exp2(base - top);
  const float sink_weight = sink == minus_infinity() ? 0.0F : ptx::exp2(sink_power - top);
  const float total = sum * share + sink_weight;
  return {share * ptx::reciprocal(total), (top + ptx::log2(total)) * kLn2, false};
}

/// Rows of the output in global memory.
template <class Storage>
struct OutputRows {
  Storage* data;
  Wide stride;
  int rows;     ///< that exist
  int columns;  ///< likewise
  bool aligned;
  int skipped = 0;  ///< columns of the sums that come before the first, a multiple of 8
};

/// A warp's rows by way of shared memory, where a row of sums that is spread over four lanes
/// becomes 16-byte chunks. `staging` is the warp's own, with rows `pitch` bytes apart.
template <class Element, class Output>
STROBE_DEVICE void store_rows(Output& output, Word staging, int pitch,
                              const OutputRows<typename Element::Storage>& to) {
  using Storage = typename Element::Storage;
  constexpr int kChunkElements = 16 / static_cast<int>(sizeof(Storage));
  constexpr int kChunks = Output::kColumnTiles * 8 / kChunkElements;
#pragma unroll
  for (int r = 0; r < Output::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Output::kColumnTiles; ++c) {
      const int offset = Output::row_index(r) * pitch +
                         Output::column_index(c) * static_cast<int>(sizeof(Storage));
      Element::store_pair(staging + offset, output.at(r, c, 0), output.at(r, c, 1));
    }
  }
  __syncwarp();
  const Word first = staging + to.skipped * static_cast<int>(sizeof(Storage));
  const int rows = smaller(to.rows, Output::kRows * 8);
  if (!to.aligned) {  // neighbours by neighbouring lanes
    for (int row = 0; row < rows; ++row) {
      for (int column = lane_index(); column < to.columns; column += 32) {
        to.data[row * to.stride + column] = ptx::load_element<Storage>(
            first + row * pitch + column * static_cast<int>(sizeof(Storage)));
      }
    }
    return;
  }
  for (int i = lane_index(); i < rows * kChunks; i += 32) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const int columns = to.columns - chunk * kChunkElements;
    if (columns <= 0) continue;
    store_chunk_anywhere(to.data + row * to.stride + chunk * kChunkElements,
                         ptx::load_chunk(first + row * pitch + chunk * 16),
                         columns * static_cast<int>(sizeof(Storage)));
  }
}

}  // namespace strobe::cuda
