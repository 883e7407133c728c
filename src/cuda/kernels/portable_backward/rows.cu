// The parts of the backward pass that go over rows alone: statistics before the main kernel, the
// gradients of sinks, and after it dq from its sums.

#include "device/chunk.cuh"
#include "kernels/portable_backward/hidden_gradients.cuh"
#include "kernels/portable_backward/query_sums.cuh"

namespace strobe::cuda {
namespace {

constexpr int kChunkElements = 16 / kElementBytes;

/// Lanes that read a row of `out` together, a chunk each at a time: as many as leave the fewest of
/// them without one.
STROBE_DEVICE constexpr int lanes_for(int chunks) {
  int best = chunks > 4 ? 8 : 4;
  for (const int lanes : {16, 32}) {
    if (round_up(chunks, lanes) <= round_up(chunks, best)) best = lanes;
  }
  return best;
}
constexpr int kRowLanes = lanes_for(ceil_div(config::kValueDim, kChunkElements));
constexpr int kRowsAtOnce = kThreads / kRowLanes;

struct Chunk {
  Storage element[kChunkElements];
};

STROBE_DEVICE Chunk read_chunk(const Storage* from, int elements) {
  const union {
    uint4 whole;
    Chunk chunk;
  } piece = {load_chunk_anywhere(from, elements * kElementBytes)};
  return piece.chunk;
}

STROBE_DEVICE void write_chunk(Storage* to, const Chunk& chunk, int elements) {
  const union {
    Chunk chunk;
    uint4 whole;
  } piece = {chunk};
  store_chunk_anywhere(to, piece.whole, elements * kElementBytes);
}

/// Rows of the workspace that sequences have.
STROBE_DEVICE Wide used_rows(const Params& params) {
  return config::kVariableLength ? static_cast<Wide>(params.cu_seqlens_q[params.sequences])
                                 : params.rows;
}

/// A row of the workspace as strides count it.
struct Place {
  int sequence;
  Wide row;

  STROBE_DEVICE Place(const Params& params, Wide workspace_row)
      : sequence(config::kVariableLength ? 0 : static_cast<int>(workspace_row / params.seqlen_q)),
        row(config::kVariableLength ? workspace_row : workspace_row % params.seqlen_q) {}
};

/// Sum over the lanes of a row.
STROBE_DEVICE float over_lanes(float x) {
#pragma unroll
  for (int distance = 1; distance < kRowLanes; distance *= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

/// dout · out, in all lanes of the row.
STROBE_DEVICE float delta_of(const Params& params, const Place& place, int head, int lane) {
  const Storage* out = rows_of(params.out, params.out_strides, place.sequence, place.row, head);
  const Storage* dout = rows_of(params.dout, params.dout_strides, place.sequence, place.row, head);
  float sum = 0;
#pragma unroll
  for (int column = 0; column < config::kValueDim; column += kRowLanes * kChunkElements) {
    const int first = column + lane * kChunkElements;
    const int elements = config::kValueDim - first;
    const Chunk a = read_chunk(out + first, elements);
    const Chunk b = read_chunk(dout + first, elements);
#pragma unroll
    for (int e = 0; e < kChunkElements; ++e) {
      sum += Element::widen(a.element[e]) * Element::widen(b.element[e]);
    }
  }
  return over_lanes(sum);
}

STROBE_DEVICE void zero(float* data, Wide count) {
  const Wide step = static_cast<Wide>(gridDim.x) * gridDim.y * kThreads;
  const Wide first = (static_cast<Wide>(blockIdx.y) * gridDim.x + blockIdx.x) * kThreads +
                     static_cast<Wide>(threadIdx.x);
  for (Wide i = first; i < count / 4; i += step) {
    reinterpret_cast<float4*>(data)[i] = float4{0, 0, 0, 0};
  }
}

/// Converts one chunk of dq. Returns whether all of it is finite.
STROBE_DEVICE bool finish_chunk(const Params& params, int head, Wide row, int column) {
  const float* sums = params.dq_sums + (head * params.rows + row) * QuerySumsLayout::kRowFloats;
  Chunk chunk;
  float probe = 0;
#pragma unroll
  for (int e = 0; e < kChunkElements; e += 2) {
    const int at = column + e;
    const float2 two =
        *reinterpret_cast<const float2*>(sums + QuerySumsLayout::row_offset(at / 8, at % 8 / 2));
    chunk.element[e] = Element::narrow(two.x * params.scale);
    chunk.element[e + 1] = Element::narrow(two.y * params.scale);
    probe = fmaf(two.x, 0.0F, fmaf(two.y, 0.0F, probe));
  }
  const Place place(params, row);
  write_chunk(rows_of(params.dq, params.dq_strides, place.sequence, place.row, head) + column,
              chunk, config::kDim - column);
  return probe == 0;
}

STROBE_DEVICE Sequence sequence_of_row(const Params& params, Wide row) {
  int index = 0;
  if constexpr (config::kVariableLength) {
    while (params.cu_seqlens_q[index + 1] <= row) ++index;
  } else {
    index = static_cast<int>(row / params.seqlen_q);
  }
  return sequence_at<config::kVariableLength>(params, index);
}

/// Computes again the chunks of the lanes in `wrong`, which a lane has at `row` and `column`.
STROBE_DEVICE void repair_chunks(const Params& params, int head, Wide row, int column, Word wrong) {
  __syncwarp();
  for (; wrong != 0; wrong &= wrong - 1) {
    const int lane = __ffs(static_cast<int>(wrong)) - 1;
    const Wide its_row = __shfl_sync(kAllLanes, row, lane);
    const int its_column = __shfl_sync(kAllLanes, column, lane);
    const Sequence sequence = sequence_of_row(params, its_row);
    const Place place(params, its_row);
    const int query = static_cast<int>(place.row - sequence.first_q);
    HiddenGradients{params, sequence, head}.repair_query(
        rows_of(params.dq, params.dq_strides, place.sequence, place.row, head), query, its_column,
        smaller(its_column + kChunkElements, config::kDim));
  }
}

}  // namespace

/// Fills `statistics` and clears what is to be `cleared`. Grid: as many as one likes, then heads.
extern "C" __global__ void __launch_bounds__(kThreads)
    portable_row_statistics(const __grid_constant__ Params params) {
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes;
  const int head = static_cast<int>(blockIdx.y);
  const Wide rows = used_rows(params);
  const Wide step = static_cast<Wide>(gridDim.x) * kRowsAtOnce;
  const Wide first = static_cast<Wide>(blockIdx.x) * kRowsAtOnce;
  for (Wide block = first; block < rows; block += step) {
    const Wide row = block + static_cast<int>(threadIdx.x) / kRowLanes;
    // Past the end the last row is read again, for all lanes have to take part in the sum.
    const Place place(params, smaller(row, rows - 1));
    const float delta = delta_of(params, place, head, lane);
    if (lane != 0 || row >= rows) continue;
    const float lse = *rows_of(params.lse, params.lse_strides, place.sequence, place.row, head);
    const bool sees_nothing = lse == minus_infinity();
    params.statistics[head * params.rows + row] = {
        sees_nothing ? -minus_infinity() : (kExact ? lse : lse * kLog2E),
        sees_nothing ? 0.0F : delta};
  }
  zero(params.cleared, params.cleared_floats);
}

/// dsinks = -Σ p · delta, p the sink's probability. Grid: heads.
extern "C" __global__ void __launch_bounds__(kThreads)
    portable_sink_gradients(const __grid_constant__ Params params) {
  __shared__ float warp_sums[config::kWarps];
  const int head = static_cast<int>(blockIdx.x);
  const float sink = params.sinks[head] * (kExact ? 1.0F : kLog2E);
  const RowStatistics* statistics = params.statistics + head * params.rows;
  const Wide rows = used_rows(params);
  float sum = 0;
  for (Wide row = static_cast<Wide>(threadIdx.x); row < rows; row += kThreads) {
    const RowStatistics one = statistics[row];
    const float p = ptx::exp2((sink - one.base) * (kExact ? kLog2E : 1.0F));
    sum += p * one.delta;
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  const int warp = warp_index();
  if (lane_index() == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
#pragma unroll
  for (int w = 0; w < config::kWarps; ++w) total += warp_sums[w];
  params.dsinks[head] = -total;
}

/// dq from `dq_sums`. Grid: as many as one likes, then heads.
extern "C" __global__ void __launch_bounds__(kThreads)
    portable_finish_queries(const __grid_constant__ Params params) {
  constexpr int kChunks = ceil_div(config::kDim, kChunkElements);
  const int head = static_cast<int>(blockIdx.y);
  const Wide count = used_rows(params) * kChunks;
  const Wide step = static_cast<Wide>(gridDim.x) * kThreads;
  for (Wide first = static_cast<Wide>(blockIdx.x) * kThreads; first < count; first += step) {
    const Wide i = first + threadIdx.x;
    const Wide row = i / kChunks;
    const int column = static_cast<int>(i % kChunks) * kChunkElements;
    const bool finite = i >= count || finish_chunk(params, head, row, column);
    repair_chunks(params, head, row, column, __ballot_sync(kAllLanes, !finite));
  }
}

}  // namespace strobe::cuda
