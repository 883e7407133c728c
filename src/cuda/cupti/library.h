#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cupti/abi.h"
#include "cuda/driver/checked.h"
#include "strobe/error.h"

// NVIDIA's profiling library, found at run time. Nobody loads it who does not want to know what a
// GPU did: where it is at work, times are no longer those of a program without it.
namespace strobe::cuda::cupti {

/// CUPTI does not do something. What it says is for users: why, and what would change that.
class Refused : public Error {
 public:
  using Error::Error;
};

/// Throws Refused with the call, CUPTI's name for the result, and what to do.
[[noreturn]] void fail(const char* call, abi::Result result);

template <class... Arguments>
using Call = Checked<abi::Result, fail, Arguments...>;

/// What tells of kernels and copies, since CUDA 12.0.
class Library {
  Symbols symbols_;  // first: the calls below are looked up in it

 public:
  explicit Library(SharedObject object) : symbols_{std::move(object)} {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const SharedObject& object() const { return symbols_.object; }
  const std::vector<std::string>& missing() const { return symbols_.missing; }

  /// "13.0"; before that CUPTI counted its own versions, "API 24" for that of CUDA 12.6.
  std::string version() const;

  // clang-format off
  Call<std::uint32_t*> cuptiGetVersion{symbols_, "cuptiGetVersion"};
  Call<std::uint64_t*> cuptiGetTimestamp{symbols_, "cuptiGetTimestamp"};
  Call<abi::BufferRequested*, abi::BufferCompleted*> cuptiActivityRegisterCallbacks{symbols_, "cuptiActivityRegisterCallbacks"};
  Call<abi::ActivityKind> cuptiActivityEnable{symbols_, "cuptiActivityEnable"};
  Call<abi::ActivityKind> cuptiActivityDisable{symbols_, "cuptiActivityDisable"};
  Call<unsigned> cuptiActivityFlushAll{symbols_, "cuptiActivityFlushAll"};
  Call<std::uint8_t*, std::size_t, void**> cuptiActivityGetNextRecord{symbols_, "cuptiActivityGetNextRecord"};
  Call<abi::Context, std::uint32_t, std::size_t*> cuptiActivityGetNumDroppedRecords{symbols_, "cuptiActivityGetNumDroppedRecords"};
  // clang-format on
};

/// What counts, since CUDA 12.6.
class Profiler {
  Symbols symbols_;

 public:
  explicit Profiler(SharedObject object) : symbols_{std::move(object)} {}
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  const std::vector<std::string>& missing() const { return symbols_.missing; }

  // clang-format off
  Call<abi::PlainParameters*> cuptiProfilerInitialize{symbols_, "cuptiProfilerInitialize"};
  Call<abi::PlainParameters*> cuptiProfilerDeInitialize{symbols_, "cuptiProfilerDeInitialize"};
  Call<abi::DeviceSupported*> cuptiProfilerDeviceSupported{symbols_, "cuptiProfilerDeviceSupported"};
  Call<abi::ChipName*> cuptiDeviceGetChipName{symbols_, "cuptiDeviceGetChipName"};
  Call<abi::CounterAvailability*> cuptiProfilerGetCounterAvailability{symbols_, "cuptiProfilerGetCounterAvailability"};
  Call<abi::HostInitialize*> cuptiProfilerHostInitialize{symbols_, "cuptiProfilerHostInitialize"};
  Call<abi::HostDeinitialize*> cuptiProfilerHostDeinitialize{symbols_, "cuptiProfilerHostDeinitialize"};
  Call<abi::ConfigAddMetrics*> cuptiProfilerHostConfigAddMetrics{symbols_, "cuptiProfilerHostConfigAddMetrics"};
  Call<abi::ConfigImageSize*> cuptiProfilerHostGetConfigImageSize{symbols_, "cuptiProfilerHostGetConfigImageSize"};
  Call<abi::ConfigImage*> cuptiProfilerHostGetConfigImage{symbols_, "cuptiProfilerHostGetConfigImage"};
  Call<abi::PassCount*> cuptiProfilerHostGetNumOfPasses{symbols_, "cuptiProfilerHostGetNumOfPasses"};
  Call<abi::Evaluate*> cuptiProfilerHostEvaluateToGpuValues{symbols_, "cuptiProfilerHostEvaluateToGpuValues"};
  Call<abi::RangeEnable*> cuptiRangeProfilerEnable{symbols_, "cuptiRangeProfilerEnable"};
  Call<abi::RangeParameters*> cuptiRangeProfilerDisable{symbols_, "cuptiRangeProfilerDisable"};
  Call<abi::CounterDataSize*> cuptiRangeProfilerGetCounterDataSize{symbols_, "cuptiRangeProfilerGetCounterDataSize"};
  Call<abi::CounterDataInitialize*> cuptiRangeProfilerCounterDataImageInitialize{symbols_, "cuptiRangeProfilerCounterDataImageInitialize"};
  Call<abi::SetConfig*> cuptiRangeProfilerSetConfig{symbols_, "cuptiRangeProfilerSetConfig"};
  Call<abi::RangeParameters*> cuptiRangeProfilerStart{symbols_, "cuptiRangeProfilerStart"};
  Call<abi::RangeStop*> cuptiRangeProfilerStop{symbols_, "cuptiRangeProfilerStop"};
  Call<abi::DecodeData*> cuptiRangeProfilerDecodeData{symbols_, "cuptiRangeProfilerDecodeData"};
  Call<abi::CounterDataInfo*> cuptiRangeProfilerGetCounterDataInfo{symbols_, "cuptiRangeProfilerGetCounterDataInfo"};
  // clang-format on
};

/// Loads libcupti.so.13 or .12, or what STROBE_CUPTI names, once for the process. Both throw
/// Refused if there is none, or if it is too old.
const Library& library();
const Profiler& profiler();

/// Loads a library that CUPTI looks for by its plain name from the folder that CUPTI is in, so that
/// it finds it there.
void load_beside(const SharedObject& cupti, const char* name);

}  // namespace strobe::cuda::cupti
