// Flash attention, forward, for Hopper. A block stays on its multiprocessor and takes tiles of
// queries until there are none left. The first warpgroup hands out tiles and loads, and gives most
// of its registers to the others, which compute.

#include "kernels/hopper_forward/consumer.cuh"
#include "kernels/hopper_forward/producers.cuh"

namespace strobe::cuda {
namespace {

STROBE_DEVICE void produce(const Shared& shared, const Params& params, const TensorMap& query_map,
                           const TensorMap& key_map, const TensorMap& value_map,
                           const TensorMap& bias_map) {
  Control& control = shared.control();
  const int role = warp_index();
  if (lane_index() != 0) return;
  if (role == 0) Scheduler(shared, params).run();
  if (role == 1) QueryLoader(shared, query_map, params).run();
  if (role == 2) {
    const BiasLoader bias(shared, bias_map, params);
    KeyLoader<KeyTile, KeyHeads, config::kKeySlots>(control, control.keys, shared.keys(0), key_map,
                                                    params)
        .run([&](const auto&... block) { bias.load(block...); });
  }
  if (role == 3) {
    KeyLoader<ValueTile, ValueHeads, config::kStages>(control, control.values, shared.values(0),
                                                      value_map, params)
        .run([](const auto&...) {});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::kThreads, 1) hopper_forward(
    const __grid_constant__ TensorMap query_map, const __grid_constant__ TensorMap key_map,
    const __grid_constant__ TensorMap value_map, const __grid_constant__ TensorMap output_map,
    const __grid_constant__ TensorMap bias_map, const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Shared shared(memory);
  if (threadIdx.x == 0) {
    if (ptx::shared_address(memory) % QueryTile::kAlignment != 0) __trap();
    ptx::prefetch_map(query_map);
    ptx::prefetch_map(key_map);
    ptx::prefetch_map(value_map);
    if constexpr (kWholeChunks) ptx::prefetch_map(output_map);
    if constexpr (config::kBias) ptx::prefetch_map(bias_map);
    shared.control().init();
  }
  __syncthreads();

  const int warpgroup = warp_index() / 4;
  if (warpgroup == 0) {
    ptx::give_registers<config::kProducerRegisters>();
    produce(shared, params, query_map, key_map, value_map, bias_map);
  } else {
    ptx::take_registers<config::kConsumerRegisters>();
    Consumer(shared, params, output_map, warpgroup - 1).run();
  }
}

}  // namespace strobe::cuda
