// Flash attention, forward, for Hopper. A block stays on its multiprocessor and takes tiles of
// queries until there are none left. The first warpgroup hands out tiles and loads, and gives most
// of its registers to the others, which compute.

#include "kernels/hopper_forward/consumer.cuh"
#include "kernels/hopper_forward/producers.cuh"

namespace strobe::cuda {
namespace {

STROBE_DEVICE void produce(const Shared& shared, const Params& params, const TileMaps& query_maps,
                           const TileMaps& key_maps, const TileMaps& value_maps,
                           const TensorMap& bias_map) {
  Control& control = shared.control();
  const int role = warp_index();
  if (lane_index() != 0) return;
  if (role == 0) Scheduler(shared, params).run();
  if (role == 1) QueryLoader(shared, query_maps, params).run();
  if (role == 2) {
    const BiasLoader bias(shared, bias_map, params);
    KeyLoader<KeyTile, KeyHeads, config::kKeySlots>(control, control.keys, shared.keys(0), key_maps,
                                                    params)
        .run([&](const auto&... block) { bias.load(block...); });
  }
  if (role == 3) {
    KeyLoader<ValueTile, ValueHeads, config::kStages>(control, control.values, shared.values(0),
                                                      value_maps, params)
        .run([](const auto&...) {});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::kThreads, 1) hopper_forward(
    const __grid_constant__ TileMaps query_maps, const __grid_constant__ TileMaps key_maps,
    const __grid_constant__ TileMaps value_maps, const __grid_constant__ TileMaps output_maps,
    const __grid_constant__ TensorMap bias_map, const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Shared shared(memory);
  if (threadIdx.x == 0) {
    if (ptx::shared_address(memory) % QueryTile::kAlignment != 0) __trap();
    prefetch_maps<QueryTile>(query_maps);
    prefetch_maps<KeyTile>(key_maps);
    prefetch_maps<ValueTile>(value_maps);
    if constexpr (kWholeChunks) prefetch_maps<OutputTile>(output_maps);
    if constexpr (config::kBias) ptx::prefetch_map(bias_map);
    shared.control().init();
  }
  __syncthreads();

  const int warpgroup = warp_index() / 4;
  if (warpgroup == 0) {
    ptx::give_registers<config::kProducerRegisters>();
    produce(shared, params, query_maps, key_maps, value_maps, bias_map);
  } else {
    ptx::take_registers<config::kConsumerRegisters>();
    Consumer(shared, params, output_maps, warpgroup - 1).run();
  }
}

}  // namespace strobe::cuda
