#pragma once
// How rows of an operand lie in shared memory; read by the host's compiler and by NVRTC.

namespace strobe::cuda {

/// Whether a row of `dim` elements is whole chunks of 16 bytes. If not, rows are hardly ever
/// aligned; operands that are read often are copied then, and others loaded from where they lie.
constexpr bool is_whole_chunks(int dim, int element_bytes) {
  return dim * element_bytes % 16 == 0;
}

/// `dim` filled up so that products take whole steps of it and no half one at the end.
constexpr int whole_steps(int dim) {
  return (dim + 15) / 16 * 16;
}

/// Columns that a row of `dim` elements is filled up to: products take 16 bytes of the narrow
/// elements at a time, and 64 of the others.
constexpr int tile_columns(int dim, int element_bytes) {
  const int grain = element_bytes == 2 ? 8 : 16;
  return (dim + grain - 1) / grain * grain;
}

/// Bytes from row to row: an odd number of 16-byte chunks, so that any eight rows in a row have a
/// given chunk in eight different places of the 128 bytes that shared memory serves at a time.
constexpr int tile_pitch(int dim, int element_bytes) {
  const int chunks = tile_columns(dim, element_bytes) * element_bytes / 16;
  return (chunks / 2 * 2 + 1) * 16;
}

}  // namespace strobe::cuda
