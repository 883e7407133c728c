#pragma once

#include <cstddef>
#include <cstdint>

// What is used of the interface of NVIDIA's driver, declared here so that no CUDA toolkit is needed
// to build: types, layouts and numbers as every driver since CUDA 12.0 has them. The tests hold
// them against cuda.h where there is one.
namespace strobe::cuda::abi {

enum class Result : int {
  success = 0,
  out_of_memory = 2,
  stub_library = 34,
  no_device = 100,
  not_ready = 600,
};

using DeviceId = int;
using DevicePointer = void*;  // declared as an integer there, of the same size, and passed alike
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using GraphNode = struct GraphNodeObject*;

enum class DeviceAttribute : int {
  multiprocessor_count = 16,
  l2_cache_size = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_block_optin = 97,
};

enum class FunctionAttribute : int {
  local_size_bytes = 3,
  num_regs = 4,
  max_dynamic_shared_size_bytes = 8,
};

enum class GraphNodeType : int { kernel = 0, copy = 1, fill = 2 };

enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;

enum class LaunchAttributeId : int {
  cluster_dimension = 4,
  programmatic_stream_serialization = 6,
};

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

union LaunchAttributeValue {
  char whole[64];
  Extent cluster;
  int programmatic_stream_serialization;
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char padding[4];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  Extent grid;
  Extent block;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// Describes a tile of a tensor to the unit that copies it. The address must be a multiple of 64.
struct alignas(64) TensorMap {
  std::uint64_t opaque[16];
};

enum class TensorMapType : int {
  uint8 = 0,
  uint16 = 1,
  uint32 = 2,
  int32 = 3,
  float16 = 6,
  float32 = 7,
  bfloat16 = 9,
  tfloat32 = 11,
};
enum class TensorMapInterleave : int { none = 0 };
enum class TensorMapSwizzle : int { none = 0, bytes32 = 1, bytes64 = 2, bytes128 = 3 };
enum class TensorMapPromotion : int { none = 0, bytes64 = 1, bytes128 = 2, bytes256 = 3 };
enum class TensorMapFill : int { zeros = 0 };

using EncodeTiled = Result(TensorMap* map, TensorMapType type, std::uint32_t rank, void* data,
                           const std::uint64_t* sizes, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t* element_strides,
                           TensorMapInterleave interleave, TensorMapSwizzle swizzle,
                           TensorMapPromotion promotion, TensorMapFill fill);

}  // namespace strobe::cuda::abi
