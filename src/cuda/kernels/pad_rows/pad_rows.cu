// Chunks of 16 bytes are numbered through all rows of a batch, grid.y of them at a time: first
// those of a row's first head, then of its next. A block takes runs of neighbours.

#include "config.cuh"
#include "device/chunk.cuh"
#include "kernels/pad_rows/params.cuh"

namespace {

using strobe::cuda::Word;
using strobe::cuda::pad_rows::kChunksAtOnce;
using strobe::cuda::pad_rows::Params;

constexpr int kChunkBytes = 16;
constexpr int kElementBytes = 2;  // or twice as many

/// A row of one head, and one of its chunks.
struct Place {
  char* strided;
  char* dense;
  int chunk;
};

/// Calls visit(places, how many of them there are) for all, where a row of a head has `chunks`.
template <class Visit>
void for_each_run(const Params& p, int chunks, Visit visit) {
  constexpr int kRun = config::kThreads * kChunksAtOnce;
  const Word row_chunks = static_cast<Word>(p.heads) * static_cast<Word>(chunks);
  const long long all = p.rows * row_chunks;
  for (long long batch = blockIdx.y; batch < p.batch; batch += gridDim.y) {
    for (long long first = static_cast<long long>(blockIdx.x) * kRun; first < all;
         first += static_cast<long long>(gridDim.x) * kRun) {
      const long long first_row = first / row_chunks;
      const Word within = static_cast<Word>(first - first_row * row_chunks) + threadIdx.x;
      Place places[kChunksAtOnce];
#pragma unroll
      for (int i = 0; i < kChunksAtOnce; ++i) {
        const Word at = within + static_cast<Word>(i * config::kThreads);
        const long long row = first_row + at / row_chunks;
        const Word head = at % row_chunks / static_cast<Word>(chunks);
        places[i] = {p.strided + batch * p.batch_stride + row * p.row_stride + head * p.head_stride,
                     p.dense + ((batch * p.rows + row) * p.heads + head) * p.dense_row_bytes,
                     static_cast<int>(at % static_cast<Word>(chunks))};
        if (row >= p.rows) places[i].chunk = -1;
      }
      visit(places);
    }
  }
}

/// A chunk that lies at a multiple of 16 bytes in the strided tensor, some of which is the row's:
/// from byte `begin` of the row on, which may be before its first.
void cut_chunk(const Params& p, const Place& place, int begin, uint4 chunk) {
  if (begin >= 0 && begin + kChunkBytes <= p.row_bytes) {
    *reinterpret_cast<uint4*>(place.strided + begin) = chunk;
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
extern "C" __global__ void __launch_bounds__(config::kThreads) pad_rows(const Params p) {
  for_each_run(p, p.dense_row_bytes / kChunkBytes, [&](const Place(&places)[kChunksAtOnce]) {
    uint4 chunks[kChunksAtOnce];
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      const int offset = places[i].chunk * kChunkBytes;
      chunks[i] = strobe::cuda::load_chunk_anywhere(places[i].strided + offset,
                                                    offset < 0 ? 0 : p.row_bytes - offset);
    }
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      if (places[i].chunk >= 0)
        reinterpret_cast<uint4*>(places[i].dense)[places[i].chunk] = chunks[i];
    }
  });
}

/// dense → strided, without what is behind each row. Chunks are those of the strided row, which may
/// begin and end within one: hence one more.
extern "C" __global__ void __launch_bounds__(config::kThreads) cut_rows(const Params p) {
  const int most = (p.row_bytes + kChunkBytes - 1) / kChunkBytes + 1;
  for_each_run(p, most, [&](const Place(&places)[kChunksAtOnce]) {
    uint4 chunks[kChunksAtOnce];
    int begins[kChunksAtOnce];
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      const auto address = reinterpret_cast<unsigned long long>(places[i].strided);
      begins[i] = places[i].chunk * kChunkBytes - static_cast<int>(address % kChunkBytes);
      if (places[i].chunk < 0) begins[i] = p.row_bytes;  // nothing of it
      const int bytes = begins[i] < 0 ? 0 : p.row_bytes - begins[i];
      chunks[i] = strobe::cuda::load_chunk_anywhere(places[i].dense + begins[i], bytes);
    }
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) cut_chunk(p, places[i], begins[i], chunks[i]);
  });
}
