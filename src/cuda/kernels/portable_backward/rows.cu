// The parts of the backward pass that go over rows alone: statistics before the main kernel, the
// gradients of sinks, and after it dq from its sums.

#include "device/chunk.cuh"
#include "device/ptx/stream_order.cuh"
#include "kernels/portable_backward/hidden_gradients.cuh"
#include "kernels/portable_backward/query_sums.cuh"

namespace strobe::cuda {
namespace {

constexpr int kChunkElements = 16 / kElementBytes;

constexpr bool kWholeChunks = config::kValueDim % kChunkElements == 0;
/// Of a row of `out`: if it is not of whole ones, it may begin within one.
constexpr int kValueChunks =
    ceil_div(config::kValueDim + (kWholeChunks ? 0 : kChunkElements - 1), kChunkElements);
/// What a warp takes at a time.
constexpr int kWarpRows = 8;
constexpr int kRowsAtOnce = config::kWarps * kWarpRows;

struct Chunk {
  Storage element[kChunkElements];
};

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
      : sequence(config::kVariableLength ? 0 : sequence_of(workspace_row, params.seqlen_q)),
        row(workspace_row - static_cast<Wide>(sequence) * params.seqlen_q) {}

 private:
  /// Most rows have numbers below 2³², which take a fraction of the time to divide.
  STROBE_DEVICE static int sequence_of(Wide row, int seqlen) {
    const auto low = static_cast<Word>(row);
    return static_cast<int>(row == low ? low / static_cast<Word>(seqlen) : row / seqlen);
  }
};

/// Behind all rows of a tensor.
STROBE_DEVICE const Storage* end_of(const Params& params, const void* data,
                                    const RowStrides& strides) {
  const auto along = [](Wide stride, Wide count) { return larger(stride, Wide{0}) * (count - 1); };
  return static_cast<const Storage*>(data) +
         (config::kVariableLength
              ? along(strides.row, used_rows(params))
              : along(strides.sequence, params.sequences) + along(strides.row, params.seqlen_q)) +
         along(strides.head, params.heads) + config::kValueDim;
}

/// The product of a chunk of a row of `out` with what `dout` has there, in two steps, so that a
/// thread has several on their way: all that are started before one is finished.
class ChunkProduct {
 public:
  /// Anything may be read that is before the ends.
  STROBE_DEVICE void start(const Storage* out, const Storage* dout, int chunk,
                           const Storage* out_end, const Storage* dout_end) {
    const int before = elements_before(out);
    const bool alike =
        kWholeChunks ? (before | elements_before(dout)) == 0 : before == elements_before(dout);
    first_ = chunk * kChunkElements - (kWholeChunks || !alike ? 0 : before);
    out_ = out + first_;
    dout_ = dout + first_;
    is_loaded_ = alike && out_ + kChunkElements <= out_end && dout_ + kChunkElements <= dout_end;
    a_.whole = b_.whole = uint4{0, 0, 0, 0};
    if (is_loaded_) {
      a_.whole = ptx::load_global_chunk(out_);
      b_.whole = ptx::load_global_chunk(dout_);
    }
  }

  STROBE_DEVICE float finish() const {
    float sum = 0;
    if (!is_loaded_) {
#pragma unroll 1
      for (int e = 0; e < kChunkElements; ++e) {
        if (exists(e)) sum += Element::widen(out_[e]) * Element::widen(dout_[e]);
      }
      return sum;
    }
#pragma unroll
    for (int e = 0; e < kChunkElements; ++e) {
      const float term = Element::widen(a_.chunk.element[e]) * Element::widen(b_.chunk.element[e]);
      if (kWholeChunks || exists(e)) sum += term;
    }
    return sum;
  }

 private:
  union Piece {
    uint4 whole;
    Chunk chunk;
  };

  STROBE_DEVICE static int elements_before(const Storage* row) {
    return static_cast<int>(reinterpret_cast<unsigned long long>(row) % 16) / kElementBytes;
  }

  STROBE_DEVICE bool exists(int e) const {
    return static_cast<Word>(first_ + e) < static_cast<Word>(config::kValueDim);
  }

  const Storage* out_;
  const Storage* dout_;
  int first_;  ///< element of the row
  bool is_loaded_;
  Piece a_;
  Piece b_;
};

template <class T>
STROBE_DEVICE const T* pointer_of_lane(const T* pointer, int lane) {
  return reinterpret_cast<const T*>(__shfl_sync(kAllLanes, reinterpret_cast<Wide>(pointer), lane));
}

/// dout · out of as many rows as a warp takes, from `first` on, each in the lane of its number and
/// in those that follow kWarpRows apart. Past the end the last row is read again. Neighbouring
/// lanes read neighbouring chunks.
STROBE_DEVICE float deltas_of(const Params& params, Wide first, int head) {
  constexpr int kCount = kWarpRows * kValueChunks;
  constexpr int kRounds = ceil_div(kCount, 32);
  constexpr int kAtOnce = kRounds <= 5 ? kRounds : 4;
  __shared__ float parts[config::kWarps][kWarpRows][kValueChunks | 1];
  auto& part = parts[warp_index()];
  const int lane = lane_index();
  const Place place(params, smaller(first + lane % kWarpRows, used_rows(params) - 1));
  const Storage* out = rows_of(params.out, params.out_strides, place.sequence, place.row, head);
  const Storage* dout = rows_of(params.dout, params.dout_strides, place.sequence, place.row, head);
  const Storage* out_end = end_of(params, params.out, params.out_strides);
  const Storage* dout_end = end_of(params, params.dout, params.dout_strides);
#pragma unroll 1
  for (int begin = 0; begin < kCount; begin += kAtOnce * 32) {
    ChunkProduct products[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = smaller(begin + j * 32 + lane, kCount - 1);
      products[j].start(pointer_of_lane(out, i / kValueChunks),
                        pointer_of_lane(dout, i / kValueChunks), i % kValueChunks, out_end,
                        dout_end);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = smaller(begin + j * 32 + lane, kCount - 1);
      part[i / kValueChunks][i % kValueChunks] = products[j].finish();
    }
  }
  __syncwarp();
  float delta = 0;
  for (int i = lane / kWarpRows; i < kValueChunks; i += 32 / kWarpRows)
    delta += part[lane % kWarpRows][i];
  __syncwarp();
#pragma unroll
  for (int distance = kWarpRows; distance < 32; distance *= 2)
    delta += __shfl_xor_sync(kAllLanes, delta, distance);
  return delta;
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

/// Fills `statistics` and clears what is to be `cleared`. Grid: heads, whose rows follow each other
/// in memory, then as many as one likes.
extern "C" __global__ void __launch_bounds__(kThreads)
    portable_row_statistics(const __grid_constant__ Params params) {
  ptx::let_next_kernel_start();
  const int head = static_cast<int>(blockIdx.x);
  const Wide rows = used_rows(params);
  const Wide step = static_cast<Wide>(gridDim.y) * kRowsAtOnce;
  const Wide begin = static_cast<Wide>(blockIdx.y) * kRowsAtOnce + warp_index() * kWarpRows;
  for (Wide first = begin; first < rows; first += step) {
    const float delta = deltas_of(params, first, head);
    const Wide row = first + lane_index();
    if (lane_index() >= kWarpRows || row >= rows) continue;
    const Place place(params, row);
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
  const float sink = params.sinks[head];
  const Wide first = head * params.rows;
  const Wide rows = used_rows(params);
  float sum = 0;
  for (Wide row = static_cast<Wide>(threadIdx.x); row < rows; row += kThreads) {
    const RowStatistics one = params.statistics[first + row];
    float p = sink_probability(sink, one.base);
    if constexpr (kExact) p = fmaf(p, params.corrections[first + row], p);
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

/// dq from `dq_sums`. Grid: heads, then as many as one likes.
extern "C" __global__ void __launch_bounds__(kThreads)
    portable_finish_queries(const __grid_constant__ Params params) {
  constexpr int kChunks = ceil_div(config::kDim, kChunkElements);
  const int head = static_cast<int>(blockIdx.x);
  const Wide count = used_rows(params) * kChunks;
  const Wide step = static_cast<Wide>(gridDim.y) * kThreads;
  for (Wide first = static_cast<Wide>(blockIdx.y) * kThreads; first < count; first += step) {
    const Wide i = first + threadIdx.x;
    const Wide row = i / kChunks;
    const int column = static_cast<int>(i % kChunks) * kChunkElements;
    const bool finite = i >= count || finish_chunk(params, head, row, column);
    repair_chunks(params, head, row, column, __ballot_sync(kAllLanes, !finite));
  }
}

}  // namespace strobe::cuda
