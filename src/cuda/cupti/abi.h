#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver/abi.h"

// What is used of the interface of CUPTI, declared here so that no CUDA toolkit is needed to build.
// The tests hold it against CUPTI's headers where there are some.
namespace strobe::cuda::cupti::abi {

using Context = cuda::abi::Context;

enum class Result : int {
  success = 0,
  max_limit_reached = 12,
  not_compatible = 14,
  not_initialized = 15,
  hardware_busy = 26,
  virtualized_device_not_supported = 33,
  insufficient_privileges = 35,
  old_profiler_api_initialized = 36,
  multiple_subscribers_not_supported = 39,
  virtualized_device_insufficient_privileges = 40,
};

// Activity: what was done, and when.

enum class ActivityKind : int { copy = 1, fill = 2, serial_kernel = 3, kernel = 10 };

inline constexpr unsigned kFlushForced = 1;

/// The beginnings of records, which are the same in all versions of CUPTI since 12.0. Later fields
/// are not read: they come and go.
struct KernelRecord {
  ActivityKind kind;
  std::uint8_t cache_config, shared_memory_config;
  std::uint16_t registers;
  int partitioned_cache_requested, partitioned_cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::int32_t static_shared_bytes, dynamic_shared_bytes;
  std::uint32_t local_bytes, local_bytes_of_all, correlation;
  std::int64_t grid_id;
  const char* name;
};

enum class CopyKind : std::uint8_t {
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 8,
  peer_to_peer = 10,
};

/// Of copies and of fills. A fill has its value where a copy has its kind and the two memories.
struct MemoryRecord {
  ActivityKind kind;
  CopyKind copy_kind;
  std::uint8_t from, to, flags;
  std::uint64_t bytes;
  std::uint64_t start, end;
  std::uint32_t device, context, stream;
};

using BufferRequested = void(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
using BufferCompleted = void(Context context, std::uint32_t stream, std::uint8_t* buffer,
                             std::size_t bytes, std::size_t valid_bytes);

// Counters. Each function takes a structure that begins with its own size, without padding at its
// end, by which CUPTI knows the version: ours are of CUDA 12.6, and later ones only append.

enum class ProfilerType : int { range_profiler = 0 };
enum class Range : int { automatic = 1 };
enum class Replay : int { user = 3 };
enum class Support : int { unknown = 0, unsupported = 1, disabled = 2, supported = 3 };
enum class Api : int { range_profiling = 0 };

using HostObject = struct HostProfiler*;
using RangeObject = struct RangeProfiler*;

struct PlainParameters {  // of cuptiProfilerInitialize and cuptiProfilerDeInitialize
  std::size_t size = sizeof(PlainParameters);
  void* none = nullptr;
};

struct DeviceSupported {
  std::size_t size = offsetof(DeviceSupported, api) + sizeof(api);
  void* none = nullptr;
  cuda::abi::DeviceId device = 0;
  Support supported = Support::unknown;
  Support architecture = Support::unknown, sli = Support::unknown, virtual_gpu = Support::unknown,
          confidential_computing = Support::unknown, mining = Support::unknown,
          wsl = Support::unknown;
  Api api = Api::range_profiling;
};

struct ChipName {
  std::size_t size = sizeof(ChipName);
  void* none = nullptr;
  std::size_t device = 0;
  const char* name = nullptr;
};

struct CounterAvailability {
  std::size_t size = sizeof(CounterAvailability);
  void* none = nullptr;
  Context context = nullptr;
  std::size_t image_bytes = 0;
  std::uint8_t* image = nullptr;
};

struct HostInitialize {
  std::size_t size = sizeof(HostInitialize);
  void* none = nullptr;
  ProfilerType type = ProfilerType::range_profiler;
  const char* chip = nullptr;
  const std::uint8_t* availability = nullptr;
  HostObject host = nullptr;
};

struct HostDeinitialize {
  std::size_t size = sizeof(HostDeinitialize);
  void* none = nullptr;
  HostObject host = nullptr;
};

struct ConfigAddMetrics {
  std::size_t size = sizeof(ConfigAddMetrics);
  void* none = nullptr;
  HostObject host = nullptr;
  const char** names = nullptr;
  std::size_t count = 0;
};

struct ConfigImageSize {
  std::size_t size = sizeof(ConfigImageSize);
  void* none = nullptr;
  HostObject host = nullptr;
  std::size_t bytes = 0;
};

struct ConfigImage {
  std::size_t size = sizeof(ConfigImage);
  void* none = nullptr;
  HostObject host = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
};

struct PassCount {
  std::size_t size = sizeof(PassCount);
  void* none = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
  std::size_t passes = 0;
};

struct Evaluate {
  std::size_t size = sizeof(Evaluate);
  void* none = nullptr;
  HostObject host = nullptr;
  const std::uint8_t* image = nullptr;
  std::size_t image_bytes = 0;
  std::size_t range = 0;
  const char** names = nullptr;
  std::size_t count = 0;
  double* values = nullptr;
};

struct RangeEnable {
  std::size_t size = sizeof(RangeEnable);
  void* none = nullptr;
  Context context = nullptr;
  RangeObject ranges = nullptr;
};

struct RangeParameters {  // of cuptiRangeProfilerDisable and cuptiRangeProfilerStart
  std::size_t size = sizeof(RangeParameters);
  void* none = nullptr;
  RangeObject ranges = nullptr;
};

struct CounterDataSize {
  std::size_t size = sizeof(CounterDataSize);
  void* none = nullptr;
  RangeObject ranges = nullptr;
  const char** names = nullptr;
  std::size_t count = 0;
  std::size_t most_ranges = 0;
  std::uint32_t most_nodes = 0;
  std::size_t bytes = 0;
};

struct CounterDataInitialize {
  std::size_t size = sizeof(CounterDataInitialize);
  void* none = nullptr;
  RangeObject ranges = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
};

struct SetConfig {
  std::size_t size = offsetof(SetConfig, nesting_level) + sizeof(nesting_level);
  void* none = nullptr;
  RangeObject ranges = nullptr;
  std::size_t config_bytes = 0;
  const std::uint8_t* config = nullptr;
  std::size_t image_bytes = 0;
  std::uint8_t* image = nullptr;
  Range range = Range::automatic;
  Replay replay = Replay::user;
  std::size_t most_ranges = 0;
  std::uint16_t nesting_levels = 1;
  std::uint16_t least_nesting_level = 1;
  std::size_t pass = 0;
  std::uint16_t nesting_level = 0;
};

struct RangeStop {
  std::size_t size = offsetof(RangeStop, all_passes_submitted) + sizeof(all_passes_submitted);
  void* none = nullptr;
  RangeObject ranges = nullptr;
  std::size_t pass = 0;
  std::size_t nesting_level = 0;
  std::uint8_t all_passes_submitted = 0;
};

struct DecodeData {
  std::size_t size = sizeof(DecodeData);
  void* none = nullptr;
  RangeObject ranges = nullptr;
  std::size_t dropped = 0;
};

struct CounterDataInfo {
  std::size_t size = sizeof(CounterDataInfo);
  void* none = nullptr;
  const std::uint8_t* image = nullptr;
  std::size_t image_bytes = 0;
  std::size_t ranges = 0;
};

}  // namespace strobe::cuda::cupti::abi
