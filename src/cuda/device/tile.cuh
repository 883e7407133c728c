#pragma once

#include "device/basics.cuh"
#include "device/ptx/async_copy.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

/// Rows of an operand in shared memory, as [rows][columns] with the columns filled up with zeros
/// to a multiple of 16. Every row is followed by 16 unused bytes: it is an odd number of 16-byte
/// chunks long, so that any eight rows in a row have a given chunk in eight different places of
/// the 128 bytes that shared memory serves at a time, and the address of every fragment is a
/// lane's own plus a constant.
template <class Storage, int rows, int dim>
struct Tile {
  static constexpr int kRows = rows;
  static constexpr int kColumns = round_up(dim, 16);
  static constexpr int kRowBytes = kColumns * static_cast<int>(sizeof(Storage));
  static constexpr int kPitch = kRowBytes + 16;
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
  /// `aligned`, rows begin at multiples of 16 bytes, and whole chunks of them are read; else
  /// elements are, and are there at once. `from` as above.
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
          copy_elements(to + r * kPitch + c * 16, from + c * kChunkElements, columns);
        }
      }
      from += kRowsAtOnce * stride;
    }
  }

 private:
  /// A chunk of which `count` elements exist.
  STROBE_DEVICE static void copy_elements(Word to, const Storage* from, int count) {
    constexpr int kElementsPerWord = 4 / static_cast<int>(sizeof(Storage));
#pragma unroll
    for (int i = 0; i < kChunkElements; i += kElementsPerWord) {
      Word word = 0;
#pragma unroll
      for (int e = 0; e < kElementsPerWord; ++e) {
        if (i + e < count) word |= ptx::bits_of(from[i + e]) << e * 16;
      }
      ptx::store_word(to + i * static_cast<int>(sizeof(Storage)), word);
    }
  }
};

}  // namespace strobe::cuda
