// What cupti/abi.h declares is what CUPTI's headers say. Nothing runs: it compiles, or it does not.
#include "cuda/cupti/abi.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <cstddef>

#if __has_include(<cupti_range_profiler.h>)
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#define STROBE_HAS_RANGE_PROFILER
#endif

namespace strobe::cuda::cupti::abi {
namespace {

template <class Ours>
constexpr bool same(Ours ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

static_assert(same(Result::success, CUPTI_SUCCESS));
static_assert(same(Result::max_limit_reached, CUPTI_ERROR_MAX_LIMIT_REACHED));
static_assert(same(Result::not_compatible, CUPTI_ERROR_NOT_COMPATIBLE));
static_assert(same(Result::not_initialized, CUPTI_ERROR_NOT_INITIALIZED));
static_assert(same(Result::hardware_busy, CUPTI_ERROR_HARDWARE_BUSY));
static_assert(same(Result::virtualized_device_not_supported,
                   CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED));
static_assert(same(Result::insufficient_privileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES));
static_assert(same(Result::old_profiler_api_initialized, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED));
static_assert(same(Result::multiple_subscribers_not_supported,
                   CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
static_assert(same(Result::virtualized_device_insufficient_privileges,
                   CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES));

static_assert(same(ActivityKind::copy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(same(ActivityKind::fill, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(same(ActivityKind::serial_kernel, CUPTI_ACTIVITY_KIND_KERNEL));
static_assert(same(ActivityKind::kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(same(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
static_assert(same(CopyKind::host_to_device, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD));
static_assert(same(CopyKind::device_to_host, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH));
static_assert(same(CopyKind::device_to_device, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD));
static_assert(same(CopyKind::peer_to_peer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP));

/// That a field of theirs lies where ours does, and is as large.
#define STROBE_SAME_FIELD(Ours, ours, Theirs, theirs)              \
  static_assert(offsetof(Ours, ours) == offsetof(Theirs, theirs)); \
  static_assert(sizeof(static_cast<Ours*>(nullptr)->ours) ==       \
                sizeof(static_cast<Theirs*>(nullptr)->theirs))

#define STROBE_KERNEL_FIELDS(Theirs)                                                  \
  STROBE_SAME_FIELD(KernelRecord, kind, Theirs, kind);                                \
  STROBE_SAME_FIELD(KernelRecord, registers, Theirs, registersPerThread);             \
  STROBE_SAME_FIELD(KernelRecord, start, Theirs, start);                              \
  STROBE_SAME_FIELD(KernelRecord, end, Theirs, end);                                  \
  STROBE_SAME_FIELD(KernelRecord, device, Theirs, deviceId);                          \
  STROBE_SAME_FIELD(KernelRecord, stream, Theirs, streamId);                          \
  static_assert(offsetof(KernelRecord, grid) == offsetof(Theirs, gridX));             \
  static_assert(offsetof(KernelRecord, grid) + 8 == offsetof(Theirs, gridZ));         \
  static_assert(offsetof(KernelRecord, block) == offsetof(Theirs, blockX));           \
  static_assert(offsetof(KernelRecord, block) + 8 == offsetof(Theirs, blockZ));       \
  STROBE_SAME_FIELD(KernelRecord, static_shared_bytes, Theirs, staticSharedMemory);   \
  STROBE_SAME_FIELD(KernelRecord, dynamic_shared_bytes, Theirs, dynamicSharedMemory); \
  STROBE_SAME_FIELD(KernelRecord, local_bytes, Theirs, localMemoryPerThread);         \
  STROBE_SAME_FIELD(KernelRecord, name, Theirs, name)

#define STROBE_MEMORY_FIELDS(Theirs)                         \
  STROBE_SAME_FIELD(MemoryRecord, kind, Theirs, kind);       \
  STROBE_SAME_FIELD(MemoryRecord, bytes, Theirs, bytes);     \
  STROBE_SAME_FIELD(MemoryRecord, start, Theirs, start);     \
  STROBE_SAME_FIELD(MemoryRecord, end, Theirs, end);         \
  STROBE_SAME_FIELD(MemoryRecord, device, Theirs, deviceId); \
  STROBE_SAME_FIELD(MemoryRecord, stream, Theirs, streamId)

STROBE_KERNEL_FIELDS(CUpti_ActivityKernel9);
STROBE_MEMORY_FIELDS(CUpti_ActivityMemcpy5);
STROBE_SAME_FIELD(MemoryRecord, copy_kind, CUpti_ActivityMemcpy5, copyKind);
STROBE_MEMORY_FIELDS(CUpti_ActivityMemset4);
#if CUPTI_API_VERSION >= 130000
STROBE_KERNEL_FIELDS(CUpti_ActivityKernel10);
STROBE_MEMORY_FIELDS(CUpti_ActivityMemcpy6);
#endif

static_assert(std::is_same_v<BufferRequested*, CUpti_BuffersCallbackRequestFunc>);

#ifdef STROBE_HAS_RANGE_PROFILER

static_assert(same(ProfilerType::range_profiler, CUPTI_PROFILER_TYPE_RANGE_PROFILER));
static_assert(same(Range::automatic, CUPTI_AutoRange));
static_assert(same(Replay::user, CUPTI_UserReplay));
static_assert(same(Support::supported, CUPTI_PROFILER_CONFIGURATION_SUPPORTED));
static_assert(same(Support::disabled, CUPTI_PROFILER_CONFIGURATION_DISABLED));
static_assert(same(Support::unsupported, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED));
static_assert(same(Api::range_profiling, CUPTI_PROFILER_RANGE_PROFILING));

/// That the last of our fields lies where theirs does, and our size ends with it.
#define STROBE_SAME_PARAMETERS(Ours, last, Theirs, theirs) \
  STROBE_SAME_FIELD(Ours, last, Theirs, theirs);           \
  static_assert(Ours{}.size == offsetof(Ours, last) + sizeof(Ours{}.last), #Ours)

STROBE_SAME_PARAMETERS(PlainParameters, none, CUpti_Profiler_Initialize_Params, pPriv);
STROBE_SAME_PARAMETERS(PlainParameters, none, CUpti_Profiler_DeInitialize_Params, pPriv);
STROBE_SAME_PARAMETERS(DeviceSupported, api, CUpti_Profiler_DeviceSupported_Params, api);
STROBE_SAME_FIELD(DeviceSupported, supported, CUpti_Profiler_DeviceSupported_Params, isSupported);
STROBE_SAME_FIELD(DeviceSupported, virtual_gpu, CUpti_Profiler_DeviceSupported_Params, vGpu);
STROBE_SAME_FIELD(DeviceSupported, confidential_computing, CUpti_Profiler_DeviceSupported_Params,
                  confidentialCompute);
STROBE_SAME_FIELD(DeviceSupported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
STROBE_SAME_PARAMETERS(ChipName, name, CUpti_Device_GetChipName_Params, pChipName);
STROBE_SAME_PARAMETERS(CounterAvailability, image, CUpti_Profiler_GetCounterAvailability_Params,
                       pCounterAvailabilityImage);
STROBE_SAME_PARAMETERS(HostInitialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
STROBE_SAME_FIELD(HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
STROBE_SAME_PARAMETERS(HostDeinitialize, host, CUpti_Profiler_Host_Deinitialize_Params,
                       pHostObject);
STROBE_SAME_PARAMETERS(ConfigAddMetrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params,
                       numMetrics);
STROBE_SAME_PARAMETERS(ConfigImageSize, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params,
                       configImageSize);
STROBE_SAME_PARAMETERS(ConfigImage, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
STROBE_SAME_PARAMETERS(PassCount, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
STROBE_SAME_PARAMETERS(Evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
                       pMetricValues);
STROBE_SAME_FIELD(Evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
STROBE_SAME_FIELD(Evaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
STROBE_SAME_PARAMETERS(RangeEnable, ranges, CUpti_RangeProfiler_Enable_Params,
                       pRangeProfilerObject);
STROBE_SAME_PARAMETERS(RangeParameters, ranges, CUpti_RangeProfiler_Disable_Params,
                       pRangeProfilerObject);
STROBE_SAME_PARAMETERS(RangeParameters, ranges, CUpti_RangeProfiler_Start_Params,
                       pRangeProfilerObject);
STROBE_SAME_PARAMETERS(CounterDataSize, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params,
                       counterDataSize);
STROBE_SAME_FIELD(CounterDataSize, most_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params,
                  maxNumOfRanges);
STROBE_SAME_FIELD(CounterDataSize, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params,
                  maxNumRangeTreeNodes);
STROBE_SAME_PARAMETERS(CounterDataInitialize, image,
                       CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
STROBE_SAME_PARAMETERS(SetConfig, nesting_level, CUpti_RangeProfiler_SetConfig_Params,
                       targetNestingLevel);
STROBE_SAME_FIELD(SetConfig, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
STROBE_SAME_FIELD(SetConfig, range, CUpti_RangeProfiler_SetConfig_Params, range);
STROBE_SAME_FIELD(SetConfig, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
STROBE_SAME_FIELD(SetConfig, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
STROBE_SAME_FIELD(SetConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params,
                  numNestingLevels);
STROBE_SAME_PARAMETERS(RangeStop, all_passes_submitted, CUpti_RangeProfiler_Stop_Params,
                       isAllPassSubmitted);
STROBE_SAME_PARAMETERS(DecodeData, dropped, CUpti_RangeProfiler_DecodeData_Params,
                       numOfRangeDropped);
STROBE_SAME_PARAMETERS(CounterDataInfo, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params,
                       numTotalRanges);

#endif

TEST(CuptiAbi, IsThatOfTheHeaders) {}

}  // namespace
}  // namespace strobe::cuda::cupti::abi
