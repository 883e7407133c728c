// The thin types over the driver, on a GPU.
#include <numeric>
#include <vector>

#include "cuda/driver/graph.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/nvml.h"
#include "cuda/driver/stream.h"
#include "cuda/driver/tensor_map.h"
#include "cuda/gpu.h"
#include "strobe/error.h"

namespace strobe::cuda::driver {
namespace {

class CudaGpu : public test::OnGpu {};

TEST_F(CudaGpu, IsDescribed) {
  EXPECT_FALSE(device().name().empty());
  EXPECT_GT(device().multiprocessors(), 0);
  EXPECT_GT(device().memory_bytes(), 1 << 20);
  EXPECT_GT(device().l2_bytes(), 0);
  EXPECT_GE(device().shared_bytes_per_block(), 48 * 1024);
  EXPECT_THROW(Device::at(Device::count()), InvalidArgument);
  EXPECT_THROW(Device::at(-1), InvalidArgument);
}

TEST_F(CudaGpu, ContextOfTheCallerIsRestored) {
  abi::Context before = nullptr;
  abi::Context inside = nullptr;
  abi::Context after = nullptr;
  api().cuCtxGetCurrent(&before);
  {
    const ContextScope scope(device());
    api().cuCtxGetCurrent(&inside);
    EXPECT_EQ(&Device::current(), &device());
  }
  api().cuCtxGetCurrent(&after);
  EXPECT_EQ(inside, device().primary_context());
  EXPECT_EQ(before, after);
}

TEST_F(CudaGpu, MemoryGoesThereAndBack) {
  const Stream stream(device());
  std::vector<int> sent(100'000);
  std::iota(sent.begin(), sent.end(), 7);
  const std::size_t bytes = sent.size() * sizeof(int);
  const DeviceMemory there(device(), bytes);
  std::vector<int> received(sent.size());
  const ContextScope scope(device());
  copy_async(there.data(), sent.data(), bytes, stream.get());
  fill_async(there.data(), 0xFF, sizeof(int), stream.get());
  copy_async(received.data(), there.data(), bytes, stream.get());
  stream.synchronize();
  EXPECT_EQ(received[0], -1);
  EXPECT_TRUE(std::equal(sent.begin() + 1, sent.end(), received.begin() + 1));
}

TEST_F(CudaGpu, TooMuchMemoryIsRefusedAndLeavesEverythingHealthy) {
  EXPECT_THROW(DeviceMemory(device(), std::size_t{1} << 50), OutOfMemory);
  const DeviceMemory fine(device(), 1 << 20);
  EXPECT_NE(fine.data(), nullptr);
  EXPECT_EQ(DeviceMemory(device(), 0).data(), nullptr);
}

TEST_F(CudaGpu, EventsTellTheTime) {
  const Stream stream(device());
  Event start(device());
  Event end(device());
  const DeviceMemory memory(device(), 1 << 28);
  const ContextScope scope(device());
  start.record(stream.get());
  fill_async(memory.data(), 1, memory.bytes(), stream.get());
  end.record(stream.get());
  end.synchronize();
  EXPECT_TRUE(start.reached());
  EXPECT_GT(milliseconds_between(start, end), 0);
}

TEST_F(CudaGpu, GraphsRunWhatWasRecorded) {
  const Stream stream(device());
  const DeviceMemory memory(device(), 64);
  const ContextScope scope(device());
  fill_async(memory.data(), 0, 64, stream.get());
  const Graph graph = Graph::capture(device(), stream.get(),
                                     [&] { fill_async(memory.data(), 5, 64, stream.get()); });
  const auto first_byte = [&] {
    unsigned char byte = 0;
    copy_async(&byte, memory.data(), 1, stream.get());
    stream.synchronize();
    return byte;
  };
  EXPECT_EQ(first_byte(), 0);
  graph.launch(stream.get());
  EXPECT_EQ(first_byte(), 5);
}

TEST_F(CudaGpu, ARecordingThatFailsLeavesTheStreamAsItWas) {
  const Stream stream(device());
  const DeviceMemory memory(device(), 64);
  const ContextScope scope(device());
  EXPECT_THROW(Graph::capture(device(), stream.get(),
                              [&] {
                                fill_async(memory.data(), 1, 64, stream.get());
                                throw Error("no more");
                              }),
               Error);
  fill_async(memory.data(), 2, 64, stream.get());
  stream.synchronize();
}

TEST_F(CudaGpu, TensorMapsAreEncodedAndTheirRulesChecked) {
  if (!can_encode_tensor_maps() || device().capability_major() < 9) {
    GTEST_SKIP() << "needs compute capability 9.0";
  }
  const ContextScope scope(device());
  const DeviceMemory memory(device(), 1 << 20);
  TiledTensor tensor{.data = memory.data(),
                     .rank = 2,
                     .sizes = {128, 64},
                     .strides = {256},
                     .box = {64, 64},
                     .swizzle = abi::TensorMapSwizzle::bytes128};
  const abi::TensorMap map = encode(tensor);
  EXPECT_NE(std::accumulate(map.opaque, map.opaque + 16, std::uint64_t{0}), 0u);
  tensor.strides = {250};  // no multiple of 16
  EXPECT_THROW(encode(tensor), CudaError);
}

TEST_F(CudaGpu, NvmlSaysItsVersion) {
  const Nvml nvml = load_nvml();
  if (!nvml.missing.empty()) GTEST_SKIP() << nvml.missing;
  EXPECT_FALSE(nvml.version.empty());
  EXPECT_FALSE(nvml.driver_version.empty());
}

}  // namespace
}  // namespace strobe::cuda::driver
