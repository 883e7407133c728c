#pragma once

#include "device/basics.cuh"
#include "device/chunk.cuh"
#include "device/ptx/async_copy.cuh"
#include "device/ptx/shared_memory.cuh"
#include "device/tile_pitch.cuh"

namespace strobe::cuda {

/// Rows of an operand in shared memory, as [rows][columns] with the columns filled up with zeros.
/// The address of every fragment is a lane's own plus a constant.
template <class Storage, int rows, int dim>
struct Tile {
  static constexpr int kRows = rows;
  static constexpr int kColumns = tile_columns(dim, sizeof(Storage));
  static constexpr int kRowBytes = kColumns * static_cast<int>(sizeof(Storage));
  static constexpr int kPitch = tile_pitch(dim, sizeof(Storage));
  static constexpr int kBytes = kRows * kPitch;

  static constexpr int kChunkElements = 16 / static_cast<int>(sizeof(Storage));
  static constexpr int kChunks = kRowBytes / 16;
  /// Threads that copy a row together, 128 bytes at a time.
  static constexpr int kThreadsPerRow = kChunks >= 8 ? 8 : kChunks >= 4 ? 4 : 2;

  STROBE_DEVICE static int first_row() { return static_cast<int>(threadIdx.x) / kThreadsPerRow; }
  STROBE_DEVICE static int first_chunk() { return static_cast<int>(threadIdx.x) % kThreadsPerRow; }

  /// Where this thread begins to copy a tile that begins at `data`.
  STROBE_DEVICE static const Storage* thread_source(const Storage* data, Wide stride) {
    return data + first_row() * stride + first_chunk() * kChunkElements;
  }

  /// Starts to copy the first `valid_rows` rows of `valid_columns` columns; the rest is zeros. If
  /// `aligned`, rows begin at multiples of 16 bytes and are whole chunks; else nothing is started,
  /// and all is there at once. `from` as above.
  template <int threads, bool aligned>
  STROBE_DEVICE static void load_async(Word tile, const Storage* from, Wide stride, int valid_rows,
                                       int valid_columns) {
    constexpr int kRowsAtOnce = threads / kThreadsPerRow;
    const Word to = tile + first_row() * kPitch + first_chunk() * 16;
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsAtOnce) {
      const int row = first_row() + r;
      if (kRows % kRowsAtOnce != 0 && row >= kRows) break;
#pragma unroll
      for (int c = 0; c < kChunks; c += kThreadsPerRow) {
        const int chunk = first_chunk() + c;
        if (kChunks % kThreadsPerRow != 0 && chunk >= kChunks) break;
        const int columns = row < valid_rows ? valid_columns - chunk * kChunkElements : 0;
        if constexpr (aligned) {
          ptx::copy_chunk_async(to + r * kPitch + c * 16, from + c * kChunkElements, columns > 0);
        } else {
          ptx::store_chunk(to + r * kPitch + c * 16,
                           load_chunk_anywhere(from + c * kChunkElements,
                                               columns * static_cast<int>(sizeof(Storage))));
        }
      }
      from += kRowsAtOnce * stride;
    }
  }
};

}  // namespace strobe::cuda
