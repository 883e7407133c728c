// Flash attention, backward, for Hopper. A thread block has some keys of one key head and goes
// through the blocks of queries that see them, of all query heads of the group, so that dk and dv
// are summed in registers in a fixed order; dq leaves block by block and is added up in memory,
// where the last to add to a head's may also convert it. The first warpgroup loads and adds, and
// gives most of its registers to the others, which compute. It may be started while the statistics
// of queries are still being computed: who needs them, or what is cleared with them, waits.

#include "device/ptx/stream_order.cuh"
#include "kernels/hopper_backward/key_value_consumer.cuh"
#include "kernels/hopper_backward/producers.cuh"
#include "kernels/hopper_backward/split_consumers.cuh"

namespace strobe::cuda {
namespace {

STROBE_DEVICE void consume(const Shared& shared, const Params& params, int warpgroup,
                           const TensorMap& dk_map, const TensorMap& dv_map) {
  if constexpr (config::kFinishes && !kHandsSlicesOver) {
    ptx::wait_for_kernel_before();
    if (lane_index() == 0) HeadSums(params).wait_until_clear();
    __syncwarp();
  }
  if constexpr (!config::kSplitsGradients) {
    KeyValueConsumer(shared, params, warpgroup).run(dk_map, dv_map);
  } else {
    SplitConsumer(shared, params, warpgroup).run(dk_map, dv_map);
  }
  if constexpr (config::kFinishes) HeadSums(params).finish(shared);
}

template <int dim>
STROBE_DEVICE void clear_rows(Storage* to, Wide stride, int count) {
  constexpr int kChunks = ceil_div(dim, kChunkElements);
  for (int i = static_cast<int>(threadIdx.x); i < count * kChunks; i += config::kThreads) {
    const int column = i % kChunks * kChunkElements;
    store_chunk_anywhere(to + i / kChunks * stride + column, uint4{0, 0, 0, 0},
                         static_cast<int>(sizeof(Storage)) * (dim - column));
  }
}

/// Of keys that nobody sees.
STROBE_DEVICE void clear_gradients(const Params& params, const KeyBlock& keys) {
  const int count = smaller(keys.sequence.length_k - keys.first_key, config::kBlockKeys);
  clear_rows<config::kDim>(keys.rows(params.dk, params.dk_strides, keys.first_key),
                           params.dk_strides.row, count);
  clear_rows<config::kValueDim>(keys.rows(params.dv, params.dv_strides, keys.first_key),
                                params.dv_strides.row, count);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::kThreads, config::kBlocksAtATime)
    hopper_backward(
        const __grid_constant__ TensorMap query_map, const __grid_constant__ TensorMap key_map,
        const __grid_constant__ TensorMap value_map, const __grid_constant__ TensorMap dout_map,
        const __grid_constant__ TensorMap dk_map, const __grid_constant__ TensorMap dv_map,
        const __grid_constant__ TensorMap bias_map, const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Shared shared(memory);
  if (threadIdx.x == 0) {
    if (ptx::shared_address(memory) % KeyTile::kAlignment != 0) __trap();
    ptx::prefetch_map(query_map);
    ptx::prefetch_map(key_map);
    ptx::prefetch_map(value_map);
    ptx::prefetch_map(dout_map);
    if constexpr (config::kBias) ptx::prefetch_map(bias_map);
    shared.control().init();
  }
  const int warp = warp_index();
  if (config::kVariableLength && warp == 1) {
    const KeyBlock block = KeyBlock::of_this_block(params);
    if (lane_index() == 0) shared.control().block = block;
  }
  __syncthreads();
  if constexpr (config::kInPairs) ptx::sync_cluster();
  if constexpr (kQueriesEnd) {
    const KeyBlock block = shared.key_block(params);
    if (!is_seen(params, block)) {
      ptx::wait_for_kernel_before();  // or this kernel might end first, and the next one begin
      return clear_gradients(params, block);
    }
  }

  if (warp < 4) {
    ptx::give_registers<config::kProducerRegisters>();
    if (warp == 1 || warp == 3) ptx::wait_for_kernel_before();
    if (warp == 1) StatisticsLoader(shared, params, bias_map).run();
    if (config::kFinishes && warp == 3) HeadSums(params).clear_next();
    if (lane_index() != 0) return;
    if (warp == 2) load_keys(shared, params, key_map, value_map);
    if (warp == 0) QueryLoader(shared, params).run(query_map, dout_map);
    if constexpr (config::kInPairs) {
      if (warp == 2) load_partner_keys(shared, params, key_map);
      if (warp == 3) ScoreSender(shared, params).run();
    }
    if (warp >= 2 && warp - 2 < config::kSliceWriters) {
      ptx::wait_for_kernel_before();
      if constexpr (kHandsSlicesOver) SliceAdder(shared, params, warp - 2).run();
      if constexpr (kTakesTurns) TurnKeeper(shared, params, warp - 2).run();
    }
  } else {
    ptx::take_registers<config::kConsumerRegisters>();
    consume(shared, params, warp / 4 - 1, dk_map, dv_map);
  }
}

}  // namespace strobe::cuda
