// A block is [positions, threads of a position]; a position is one (batch, row), and its threads
// share the chunks of 16 bytes of all heads.

#include "config.cuh"
#include "device/chunk.cuh"
#include "kernels/pad_rows/params.cuh"

namespace {

using strobe::cuda::pad_rows::Params;

constexpr int kChunkBytes = 16;

/// Calls visit(chunk of the strided row, bytes of it that exist, chunk of the dense row) for each.
template <class Visit>
void for_each_chunk(const Params& p, Visit visit) {
  const int chunks = p.dense_row_bytes / kChunkBytes;
  const long long positions = p.batch * p.rows;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long position = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
       position < positions; position += step) {
    char* const strided =
        p.strided + position / p.rows * p.batch_stride + position % p.rows * p.row_stride;
    char* const dense = p.dense + position * p.heads * p.dense_row_bytes;
    for (int i = threadIdx.x; i < p.heads * chunks; i += blockDim.x) {
      const int head = i / chunks;
      const int offset = (i - head * chunks) * kChunkBytes;
      visit(strided + head * p.head_stride + offset, p.row_bytes - offset,
            reinterpret_cast<uint4*>(dense) + i);
    }
  }
}

}  // namespace

/// strided → dense, with zeros behind each row.
extern "C" __global__ void __launch_bounds__(config::kThreads) pad_rows(const Params p) {
  for_each_chunk(p, [](const char* strided, int bytes, uint4* dense) {
    *dense = strobe::cuda::load_chunk_anywhere(strided, bytes);
  });
}

/// dense → strided, without what is behind each row.
extern "C" __global__ void __launch_bounds__(config::kThreads) cut_rows(const Params p) {
  for_each_chunk(p, [](char* strided, int bytes, const uint4* dense) {
    strobe::cuda::store_chunk_anywhere(strided, *dense, bytes);
  });
}
