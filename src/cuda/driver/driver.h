#pragma once

#include <memory>
#include <string>

#include "cuda/driver/abi.h"
#include "cuda/driver/checked.h"
#include "strobe/error.h"

// NVIDIA's driver library, found at run time.
namespace strobe::cuda::driver {

/// A call of the driver failed. The message names the call, CUDA's name for the error and its text.
class CudaError : public Error {
 public:
  CudaError(const std::string& message, abi::Result result) : Error(message), result_(result) {}
  abi::Result result() const { return result_; }

 private:
  abi::Result result_;
};

/// Throws OutOfMemory or CudaError.
[[noreturn]] void fail(const char* call, abi::Result result);

/// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
std::string describe(abi::Result result);

/// Every function of the driver that is used, under its own name.
class Api {
  template <class... Arguments>
  using Call = Checked<abi::Result, fail, Arguments...>;

  Symbols symbols_;  // first: the calls below are looked up in it

 public:
  explicit Api(SharedObject object) : symbols_{std::move(object)} {}
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  /// The functions that this driver lacks.
  const std::vector<std::string>& missing() const { return symbols_.missing; }

  using ProcAddress = Call<const char*, void**, int, std::uint64_t, int*>;

  // clang-format off
  ProcAddress cuGetProcAddress{symbols_, "cuGetProcAddress_v2"};

  Call<abi::DeviceId*, int> cuDeviceGet{symbols_, "cuDeviceGet"};
  Call<int*> cuDeviceGetCount{symbols_, "cuDeviceGetCount"};
  Call<char*, int, abi::DeviceId> cuDeviceGetName{symbols_, "cuDeviceGetName"};
  Call<char*, int, abi::DeviceId> cuDeviceGetPCIBusId{symbols_, "cuDeviceGetPCIBusId"};
  Call<std::size_t*, abi::DeviceId> cuDeviceTotalMem{symbols_, "cuDeviceTotalMem_v2"};
  Call<int*, abi::DeviceAttribute, abi::DeviceId> cuDeviceGetAttribute{symbols_, "cuDeviceGetAttribute"};

  Call<abi::Context*, abi::DeviceId> cuDevicePrimaryCtxRetain{symbols_, "cuDevicePrimaryCtxRetain"};
  Call<abi::Context> cuCtxPushCurrent{symbols_, "cuCtxPushCurrent_v2"};
  Call<abi::Context*> cuCtxPopCurrent{symbols_, "cuCtxPopCurrent_v2"};
  Call<abi::Context*> cuCtxGetCurrent{symbols_, "cuCtxGetCurrent"};
  Call<abi::DeviceId*> cuCtxGetDevice{symbols_, "cuCtxGetDevice"};
  Call<> cuCtxResetPersistingL2Cache{symbols_, "cuCtxResetPersistingL2Cache"};

  Call<abi::Stream*, unsigned> cuStreamCreate{symbols_, "cuStreamCreate"};
  Call<abi::Stream> cuStreamDestroy{symbols_, "cuStreamDestroy_v2"};
  Call<abi::Stream> cuStreamSynchronize{symbols_, "cuStreamSynchronize"};

  Call<abi::Event*, unsigned> cuEventCreate{symbols_, "cuEventCreate"};
  Call<abi::Event> cuEventDestroy{symbols_, "cuEventDestroy_v2"};
  Call<abi::Event, abi::Stream> cuEventRecord{symbols_, "cuEventRecord"};
  Call<abi::Event> cuEventSynchronize{symbols_, "cuEventSynchronize"};
  Call<abi::Event> cuEventQuery{symbols_, "cuEventQuery"};
  Call<float*, abi::Event, abi::Event> cuEventElapsedTime{symbols_, "cuEventElapsedTime"};

  Call<std::size_t*, std::size_t*> cuMemGetInfo{symbols_, "cuMemGetInfo_v2"};
  Call<abi::DevicePointer*, std::size_t> cuMemAlloc{symbols_, "cuMemAlloc_v2"};
  Call<abi::DevicePointer> cuMemFree{symbols_, "cuMemFree_v2"};
  Call<abi::DevicePointer, const void*, std::size_t, abi::Stream> cuMemcpyAsync{symbols_, "cuMemcpyAsync"};
  Call<abi::DevicePointer, unsigned char, std::size_t, abi::Stream> cuMemsetD8Async{symbols_, "cuMemsetD8Async"};

  Call<abi::Module*, const void*> cuModuleLoadData{symbols_, "cuModuleLoadData"};
  Call<abi::Module> cuModuleUnload{symbols_, "cuModuleUnload"};
  Call<abi::Function*, abi::Module, const char*> cuModuleGetFunction{symbols_, "cuModuleGetFunction"};
  Call<int*, abi::FunctionAttribute, abi::Function> cuFuncGetAttribute{symbols_, "cuFuncGetAttribute"};
  Call<abi::Function, abi::FunctionAttribute, int> cuFuncSetAttribute{symbols_, "cuFuncSetAttribute"};
  Call<int*, abi::Function, int, std::size_t> cuOccupancyMaxActiveBlocksPerMultiprocessor{symbols_, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Call<const abi::LaunchConfig*, abi::Function, void**, void**> cuLaunchKernelEx{symbols_, "cuLaunchKernelEx"};

  Call<abi::Stream, abi::CaptureMode> cuStreamBeginCapture{symbols_, "cuStreamBeginCapture_v2"};
  Call<abi::CaptureMode*> cuThreadExchangeStreamCaptureMode{symbols_, "cuThreadExchangeStreamCaptureMode"};
  Call<abi::Stream, abi::Graph*> cuStreamEndCapture{symbols_, "cuStreamEndCapture"};
  Call<abi::GraphExec*, abi::Graph, unsigned long long> cuGraphInstantiate{symbols_, "cuGraphInstantiateWithFlags"};
  Call<abi::GraphExec, abi::Stream> cuGraphLaunch{symbols_, "cuGraphLaunch"};
  Call<abi::Graph, abi::GraphNode*, std::size_t*> cuGraphGetNodes{symbols_, "cuGraphGetNodes"};
  Call<abi::GraphNode, abi::GraphNodeType*> cuGraphNodeGetType{symbols_, "cuGraphNodeGetType"};
  Call<abi::Graph> cuGraphDestroy{symbols_, "cuGraphDestroy"};
  Call<abi::GraphExec> cuGraphExecDestroy{symbols_, "cuGraphExecDestroy"};
  // clang-format on
};

/// The driver, started, or a sentence that says why there is none to use.
struct Found {
  std::unique_ptr<const Api> api{};
  std::string path{};
  int version = 0;  ///< 12040 is CUDA 12.4
  std::string missing{};
};

/// The CUDA version of the driver that is installed, which is not started; 0 if there is none.
int installed_version();

/// Loads libcuda.so.1, or what STROBE_CUDA_DRIVER names, and starts it.
Found load();

/// The same, once for the process.
const Found& found();

/// Its functions. Throws Unsupported with the sentence if there is none.
const Api& api();

}  // namespace strobe::cuda::driver
