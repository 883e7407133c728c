#pragma once

// Read by the host's compiler and the GPU's.
namespace strobe::cuda::pad_rows {

/// A tensor [batch, rows, heads, dim] of any strides, and its dense copy whose dim is padded to a
/// multiple of 16 bytes. All strides and sizes of a row are in bytes.
struct Params {
  char* strided;
  char* strided_end;  ///< behind its last element
  char* dense;
  long long batch_stride, row_stride, head_stride;  // of `strided`
  long long batch, rows;
  int heads;
  int row_bytes;        // of `strided`
  int dense_row_bytes;  // with the padding
};

/// Chunks of 16 bytes that a thread has on their way at a time.
inline constexpr int kChunksAtOnce = 2;

}  // namespace strobe::cuda::pad_rows
