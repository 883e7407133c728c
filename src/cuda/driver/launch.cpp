#include "cuda/driver/launch.h"

namespace strobe::cuda::driver {

bool kernels_may_overlap() {
  constexpr int kFirstVersion = 12030;
  return found().version >= kFirstVersion;
}

void launch_with(const Function& function, const LaunchShape& shape, abi::Stream stream,
                 void** parameters) {
  abi::LaunchAttribute attributes[2] = {};
  abi::LaunchConfig config{.grid = shape.grid,
                           .block = shape.block,
                           .shared_bytes = static_cast<unsigned>(shape.dynamic_shared_bytes),
                           .stream = stream,
                           .attributes = attributes,
                           .attribute_count = 0};
  const abi::Extent& cluster = shape.cluster;
  if (cluster.x * cluster.y * cluster.z > 1) {
    abi::LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = abi::LaunchAttributeId::cluster_dimension;
    attribute.value.cluster = cluster;
  }
  if (shape.overlaps_previous) {
    abi::LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = abi::LaunchAttributeId::programmatic_stream_serialization;
    attribute.value.programmatic_stream_serialization = 1;
  }
  api().cuLaunchKernelEx(&config, function.get(), parameters, nullptr);
}

}  // namespace strobe::cuda::driver
