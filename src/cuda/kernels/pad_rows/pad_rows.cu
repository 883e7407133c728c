#include "config.cuh"
#include "kernels/pad_rows/params.cuh"

// The dense side moves 16 bytes at a time, the other one units of kUnitBytes: as much as divides
// its address, its strides and its rows. A block is [positions, threads of a position]; a position
// is one (batch, row), and its threads share the chunks of 16 bytes of all heads.
namespace {

using strobe::cuda::pad_rows::Params;

constexpr int kChunkBytes = 16;

template <int bytes>
struct UnitOf;
template <>
struct UnitOf<2> {
  using Type = unsigned short;
};
template <>
struct UnitOf<4> {
  using Type = unsigned;
};
template <>
struct UnitOf<8> {
  using Type = uint2;
};
template <>
struct UnitOf<16> {
  using Type = uint4;
};
using Unit = UnitOf<config::kUnitBytes>::Type;
constexpr int kUnits = kChunkBytes / config::kUnitBytes;

union Chunk {
  uint4 whole;
  Unit units[kUnits];
};

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
            dense + static_cast<long long>(i) * kChunkBytes);
    }
  }
}

}  // namespace

/// strided → dense, with zeros behind each row.
extern "C" __global__ void __launch_bounds__(config::kThreads) pad_rows(const Params p) {
  for_each_chunk(p, [](const char* strided, int bytes, char* dense) {
    Chunk chunk{};
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      if (u * config::kUnitBytes < bytes) {
        chunk.units[u] = reinterpret_cast<const Unit*>(strided)[u];
      }
    }
    *reinterpret_cast<uint4*>(dense) = chunk.whole;
  });
}

/// dense → strided, without what is behind each row.
extern "C" __global__ void __launch_bounds__(config::kThreads) cut_rows(const Params p) {
  for_each_chunk(p, [](char* strided, int bytes, const char* dense) {
    Chunk chunk;
    chunk.whole = *reinterpret_cast<const uint4*>(dense);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      if (u * config::kUnitBytes < bytes) reinterpret_cast<Unit*>(strided)[u] = chunk.units[u];
    }
  });
}
