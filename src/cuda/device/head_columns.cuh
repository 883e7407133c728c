#pragma once
// Rows of heads that begin or end within a chunk of 16 bytes, which the copy unit does not: it
// copies from the chunk on in which a head begins. What comes with it of other heads is cleared in
// one factor of a product, so that it does no harm in the other, as long as it is finite: what is
// not makes results that are none, which are computed again.

#include "device/chunk.cuh"
#include "device/head_period.cuh"
#include "device/ptx/mbarrier.cuh"
#include "device/ptx/shared_memory.cuh"
#include "device/warpgroup.cuh"

namespace strobe::cuda {

constexpr int kChunkElements = 8;

/// How many elements before a row is a multiple of 16 bytes.
template <class Storage>
STROBE_DEVICE int elements_before(const Storage* row) {
  return static_cast<int>(reinterpret_cast<unsigned long long>(row) / sizeof(Storage) %
                          kChunkElements);
}

/// The first column of a tile that is the head's.
template <int dim, int unit = kChunkElements>
STROBE_DEVICE int column_of_head(int head) {
  return head * dim % unit;
}

/// Where boxes of a head begin that whole heads would have at `origin`.
template <int dim, int unit = kChunkElements>
STROBE_DEVICE BoxAt<5> shifted_origin(int head, const BoxOrigin& origin) {
  constexpr int kPeriod = head_period(dim, unit);
  if constexpr (kPeriod > 0) {
    return {{0, origin.at[1], head % kPeriod, head / kPeriod, origin.at[3]}};
  } else {
    return {{head * dim - column_of_head<dim, unit>(head), origin.at[1], 0, 0, origin.at[3]}};
  }
}

/// Clears the columns of rows of a tile in shared memory that are not the head's `dim` from `first`
/// on, as far as `columns` are multiplied. By a warp.
template <class RowTile, int dim, int columns, int unit = kChunkElements, int rows = RowTile::kRows>
STROBE_DEVICE void clear_other_heads(Word tile, int first, int first_row = 0) {
  constexpr int kFirst = unit / kChunkElements;  // chunks in which it may begin
  constexpr int kLast = larger(kFirst, dim / kChunkElements);
  constexpr int kCount = kFirst + ceil_div(columns, kChunkElements) - kLast;
  constexpr int kLanes = smaller(rows, 32);  // of a chunk
  // For want of registers one after the other.
#pragma unroll 1
  for (int i = lane_index() / kLanes; i < kCount; i += 32 / kLanes) {
    const int chunk = i < kFirst ? i : i - kFirst + kLast;
    Word kept[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int column = chunk * kChunkElements + 2 * k - first;
      kept[k] = (column >= 0 && column < dim ? 0xFFFFU : 0U) |
                (column + 1 >= 0 && column + 1 < dim ? 0xFFFF0000U : 0U);
    }
    for (int row = lane_index() % kLanes; row < rows; row += kLanes) {
      const Word at = tile + RowTile::chunk_offset(first_row + row, chunk);
      const uint4 all = ptx::load_chunk(at);
      ptx::store_chunk(at, {all.x & kept[0], all.y & kept[1], all.z & kept[2], all.w & kept[3]});
    }
  }
  __syncwarp();  // some lanes took a turn more, and what comes next takes the warp as one
}

// How a thread loads tiles.

/// Of heads that begin at chunks.
template <class RowTile>
struct WholeHeads {
  template <class Maps>
  STROBE_DEVICE void start(Word to, const Maps& maps, const BoxOrigin& origin, int /*head*/,
                           Word full, ptx::CachePolicy policy) const {
    load_tile<RowTile>(to, maps, origin, full, policy);
  }
};

/// Of heads that may begin within chunks. What comes with them stays.
template <class RowTile, int dim, int unit = kChunkElements>
struct HeadsWithOthers {
  template <class Maps>
  STROBE_DEVICE void start(Word to, const Maps& maps, const BoxOrigin& origin, int head, Word full,
                           ptx::CachePolicy policy) const {
    load_tile<RowTile>(to, maps, shifted_origin<dim, unit>(head, origin), full, policy);
  }
};

/// Eight columns of a row of a tile in shared memory, from any on that is not before -8. There is
/// nothing behind the last panel.
template <class RowTile>
STROBE_DEVICE uint4 load_columns(Word tile, Word row, int column) {
  const int chunk = (column + kChunkElements) / kChunkElements - 1;
  const int within = column - chunk * kChunkElements;
  const auto part = [&](int i) {
    return i >= 0 && i < RowTile::kChunks ? ptx::load_chunk(tile + RowTile::chunk_offset(row, i))
                                          : uint4{0, 0, 0, 0};
  };
  const uint4 low = part(chunk);
  return within == 0 ? low : chunk_across(low, part(chunk + 1), 2 * within);
}

/// Elements [begin, begin + 8) of a row that has `dim`, where there are such: not all. They lie at
/// a multiple of 16 bytes.
template <class Storage>
STROBE_DEVICE void store_elements(Storage* row, int begin, int dim, uint4 chunk) {
  const Word words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < kChunkElements; i += 2) {
    const bool has_first = begin + i >= 0 && begin + i < dim;
    const bool has_second = begin + i + 1 >= 0 && begin + i + 1 < dim;
    if (has_first && has_second) {
      *reinterpret_cast<Word*>(row + begin + i) = words[i / 2];
    } else if (has_first) {
      row[begin + i] = static_cast<Storage>(words[i / 2]);
    } else if (has_second) {
      row[begin + i + 1] = static_cast<Storage>(words[i / 2] >> 16);
    }
  }
}

/// Up to `most_rows` rows of a tile in shared memory to global memory, by `threads` of which this
/// is one.
template <int most_rows, int threads>
struct RowCopy {
  int first_row;  ///< of the tile
  int rows;
  int first_column;  ///< likewise
  int thread;

  /// `aligned` if all rows are whole chunks that begin at multiples of 16 bytes.
  template <class RowTile, int dim, bool aligned, class Storage>
  STROBE_DEVICE void store(Word tile, Storage* to, Wide stride) const {
    const bool as_in_tile = aligned || (stride % kChunkElements == 0 &&
                                        elements_before(to) == first_column % kChunkElements);
    if (as_in_tile) {
      store_chunks_of_tile<RowTile, dim>(tile, to, stride);
    } else {
      store_chunks<RowTile, dim>(tile, to, stride);
    }
    if constexpr (!aligned) store_ends<RowTile, dim>(tile, to, stride);
  }

 private:
  /// Whole chunks of a row, or one more than it has.
  template <int dim>
  static constexpr int kMostChunks = dim / kChunkElements;

  /// How many elements come before the first multiple of 16 bytes.
  template <class Storage>
  STROBE_DEVICE static int elements_to_chunk(const Storage* row) {
    return (kChunkElements - elements_before(row)) % kChunkElements;
  }

  /// The whole chunks of rows that begin within a chunk where they do so in the tile: some are
  /// loaded before any is stored.
  template <class RowTile, int dim, class Storage>
  STROBE_DEVICE void store_chunks_of_tile(Word tile, Storage* to, Wide stride) const {
    constexpr int kChunks = larger(kMostChunks<dim>, 1);
    constexpr int kRounds = ceil_div(most_rows * kMostChunks<dim>, threads);
    constexpr int kAtOnce = larger(smaller(kRounds, 8), 1);
    const int first = ceil_div(first_column, kChunkElements);
    const int end = (first_column + dim) / kChunkElements;
#pragma unroll 1
    for (int begin = thread; begin < kRounds * threads; begin += kAtOnce * threads) {
      uint4 loaded[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * threads;
        const int row = smaller(i / kChunks, most_rows - 1);
        loaded[k] =
            ptx::load_chunk(tile + RowTile::chunk_offset(first_row + row, first + i % kChunks));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * threads;
        const int row = i / kChunks;
        const int chunk = first + i % kChunks;
        ptx::store_global_chunk_if(row < rows && chunk < end,
                                   to + row * stride + (chunk * kChunkElements - first_column),
                                   loaded[k]);
      }
    }
  }

  /// Those of any rows.
  template <class RowTile, int dim, class Storage>
  STROBE_DEVICE void store_chunks(Word tile, Storage* to, Wide stride) const {
    constexpr int kChunks = larger(kMostChunks<dim>, 1);
    for (int i = thread; i < rows * kMostChunks<dim>; i += threads) {
      const int row = i / kChunks;
      Storage* const begin = to + row * stride;
      const int element = elements_to_chunk(begin) + i % kChunks * kChunkElements;
      if (element + kChunkElements > dim) continue;
      ptx::store_global_chunk(begin + element,
                              load_columns<RowTile>(tile, first_row + row, element + first_column));
    }
  }

  /// What is left of them: a part of a chunk before the first whole one, and one after the last. To
  /// ask of every chunk whether it is one would take several times as long.
  template <class RowTile, int dim, class Storage>
  STROBE_DEVICE void store_ends(Word tile, Storage* to, Wide stride) const {
    for (int i = thread; i < 2 * rows; i += threads) {
      const int row = i / 2;
      Storage* const begin = to + row * stride;
      const int whole = elements_to_chunk(begin);
      const int element = i % 2 == 0 ? whole - kChunkElements
                                     : whole + (dim - whole) / kChunkElements * kChunkElements;
      store_elements(begin, element, dim,
                     load_columns<RowTile>(tile, first_row + row, element + first_column));
    }
  }
};

}  // namespace strobe::cuda
