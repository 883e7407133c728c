// A thread has one chunk of 16 bytes of one head, in as many rows as there are for it: so it finds
// only once which. Neighbours have chunks that follow each other, first those of a row's first
// head, then of its next, then of another row. Batches are taken grid.y at a time.

#include "config.cuh"
#include "device/chunk.cuh"
#include "kernels/pad_rows/params.cuh"

namespace {

using strobe::cuda::Word;
using strobe::cuda::pad_rows::kChunksAtOnce;
using strobe::cuda::pad_rows::Params;

constexpr int kChunkBytes = 16;
constexpr int kElementBytes = 2;  // or twice as many

/// A row of one head.
struct Place {
  char* strided;
  char* dense;
};

/// Some rows of a head, of each of which a thread has the same chunk.
struct Run {
  Place first;
  long long strided_step, dense_step;  ///< from one of them to the next
  long long row_step;                  ///< likewise, in rows
  long long rows;                      ///< from the first on
  int chunk;

  bool has(int i) const { return i * row_step < rows; }

  Place at(int i) const { return {first.strided + i * strided_step, first.dense + i * dense_step}; }
};

/// Calls visit(run) for all of them, where a row of a head has `chunks`.
template <class Visit>
void for_each_run(const Params& p, int chunks, Visit visit) {
  const long long row_chunks = static_cast<long long>(p.heads) * chunks;
  const long long threads = static_cast<long long>(gridDim.x) * config::kThreads;
  const long long rows_at_once = threads < row_chunks ? 1 : threads / row_chunks;
  const long long dense_row = static_cast<long long>(p.heads) * p.dense_row_bytes;
  const long long index = static_cast<long long>(blockIdx.x) * config::kThreads + threadIdx.x;
  for (long long i = index; i < rows_at_once * row_chunks; i += threads) {
    const long long first_row = i / row_chunks;
    const Word within = static_cast<Word>(i - first_row * row_chunks);
    const Word head = within / static_cast<Word>(chunks);
    Run run{{},
            rows_at_once * p.row_stride,
            rows_at_once * dense_row,
            rows_at_once,
            0,
            static_cast<int>(within - head * static_cast<Word>(chunks))};
    for (long long batch = blockIdx.y; batch < p.batch; batch += gridDim.y) {
      run.first = {
          p.strided + batch * p.batch_stride + first_row * p.row_stride + head * p.head_stride,
          p.dense + (batch * p.rows + first_row) * dense_row + head * p.dense_row_bytes};
      for (long long row = first_row; row < p.rows; row += kChunksAtOnce * rows_at_once) {
        run.rows = p.rows - row;
        visit(run);
        run.first = run.at(kChunksAtOnce);
      }
    }
  }
}

/// A chunk that lies at a multiple of 16 bytes in the strided tensor, some of which is the row's:
/// from byte `begin` of the row on, which may be before its first.
void cut_chunk(const Params& p, const Place& place, int begin, uint4 chunk) {
  if (begin >= 0 && begin + kChunkBytes <= p.row_bytes) {
    strobe::cuda::ptx::store_global_chunk(place.strided + begin, chunk);
    return;
  }
  for (int i = 0; i < kChunkBytes; i += kElementBytes) {
    if (begin + i < 0 || begin + i >= p.row_bytes) continue;
    *reinterpret_cast<unsigned short*>(place.strided + begin + i) =
        *reinterpret_cast<const unsigned short*>(place.dense + begin + i);
  }
}

}  // namespace

/// strided → dense, with zeros behind each row.
extern "C" __global__ void __launch_bounds__(config::kThreads, config::kBlocksPerMultiprocessor)
    pad_rows(const Params p) {
  for_each_run(p, p.dense_row_bytes / kChunkBytes, [&](const Run& run) {
    const int offset = run.chunk * kChunkBytes;
    strobe::cuda::ChunkLoad loads[kChunksAtOnce];
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i)
      loads[i].start(run.at(i).strided + offset, run.has(i) ? p.row_bytes - offset : 0,
                     p.strided_end);
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      if (run.has(i))
        strobe::cuda::ptx::store_global_chunk(run.at(i).dense + offset, loads[i].finish());
    }
  });
}

/// dense → strided, without what is behind each row. Chunks are those of the strided row, which may
/// begin and end within one: hence one more.
extern "C" __global__ void __launch_bounds__(config::kThreads, config::kBlocksPerMultiprocessor)
    cut_rows(const Params p) {
  const int most = (p.row_bytes + kChunkBytes - 1) / kChunkBytes + 1;
  for_each_run(p, most, [&](const Run& run) {
    const auto begin_of = [&](const Place& place) {
      const auto address = reinterpret_cast<unsigned long long>(place.strided);
      return run.chunk * kChunkBytes - static_cast<int>(address % kChunkBytes);
    };
    uint4 chunks[kChunksAtOnce];
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      const Place place = run.at(i);
      const int begin = begin_of(place);
      chunks[i] = strobe::cuda::load_chunk_anywhere(
          place.dense + begin, run.has(i) && begin >= 0 ? p.row_bytes - begin : 0);
    }
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      const Place place = run.at(i);
      if (run.has(i)) cut_chunk(p, place, begin_of(place), chunks[i]);
    }
  });
}
