// What abi.h declares is what cuda.h says. Nothing runs: it compiles, or it does not.
#include "cuda/driver/abi.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace strobe::cuda::abi {
namespace {

template <class Ours>
constexpr bool same(Ours ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

static_assert(same(Result::success, CUDA_SUCCESS));
static_assert(same(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(same(Result::stub_library, CUDA_ERROR_STUB_LIBRARY));
static_assert(same(Result::no_device, CUDA_ERROR_NO_DEVICE));
static_assert(same(Result::not_ready, CUDA_ERROR_NOT_READY));

static_assert(sizeof(DeviceId) == sizeof(CUdevice));
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(Context) == sizeof(CUcontext));

using Attribute = DeviceAttribute;
static_assert(same(Attribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(same(Attribute::l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(same(Attribute::compute_capability_major,
                   CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(same(Attribute::compute_capability_minor,
                   CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(same(Attribute::max_shared_memory_per_block_optin,
                   CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));

static_assert(same(FunctionAttribute::local_size_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
static_assert(same(FunctionAttribute::num_regs, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(same(FunctionAttribute::max_dynamic_shared_size_bytes,
                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));

static_assert(same(GraphNodeType::kernel, CU_GRAPH_NODE_TYPE_KERNEL));
static_assert(same(GraphNodeType::copy, CU_GRAPH_NODE_TYPE_MEMCPY));
static_assert(same(GraphNodeType::fill, CU_GRAPH_NODE_TYPE_MEMSET));
static_assert(same(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL));
static_assert(same(CaptureMode::thread_local_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(same(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(same(kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(same(kEventDefault, CU_EVENT_DEFAULT));

static_assert(same(LaunchAttributeId::cluster_dimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(same(LaunchAttributeId::programmatic_stream_serialization,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(sizeof(LaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, grid) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(same(TensorMapType::uint8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(same(TensorMapType::uint16, CU_TENSOR_MAP_DATA_TYPE_UINT16));
static_assert(same(TensorMapType::uint32, CU_TENSOR_MAP_DATA_TYPE_UINT32));
static_assert(same(TensorMapType::int32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(same(TensorMapType::float16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same(TensorMapType::float32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same(TensorMapType::bfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same(TensorMapType::tfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
static_assert(same(TensorMapInterleave::none, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(same(TensorMapSwizzle::none, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(same(TensorMapSwizzle::bytes32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same(TensorMapSwizzle::bytes64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same(TensorMapSwizzle::bytes128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same(TensorMapPromotion::none, CU_TENSOR_MAP_L2_PROMOTION_NONE));
static_assert(same(TensorMapPromotion::bytes64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B));
static_assert(same(TensorMapPromotion::bytes128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same(TensorMapPromotion::bytes256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
static_assert(same(TensorMapFill::zeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));

TEST(Abi, IsThatOfTheHeaders) {}

}  // namespace
}  // namespace strobe::cuda::abi
