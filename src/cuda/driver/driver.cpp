#include "cuda/driver/driver.h"

#include <utility>

#include "core/text.h"

namespace strobe::cuda::driver {
namespace {

constexpr int kOldestVersion = 12000;

SharedObject library() {
  return SharedObject({"libcuda.so.1"}, "STROBE_CUDA_DRIVER");
}

std::string version_text(int version) {
  return concat(version / 1000, ".", version % 1000 / 10);
}

/// What must work before the rest is even looked up: an old driver lacks some of it.
struct Start {
  abi::Result (*get_version)(int*) = nullptr;
  abi::Result (*init)(unsigned) = nullptr;
};

std::string why_not_started(abi::Result result) {
  switch (result) {
    case abi::Result::no_device:
      return "the NVIDIA driver finds no GPU: look whether nvidia-smi lists one, whether this "
             "container was given it, and what CUDA_VISIBLE_DEVICES says";
    case abi::Result::stub_library:
      return "libcuda.so.1 is the toolkit's stand-in and not the driver's: take its folder (stubs) "
             "out of LD_LIBRARY_PATH";
    default:
      return concat("the NVIDIA driver does not start: cuInit returns ", describe(result),
                    "; nvidia-smi may say more");
  }
}

}  // namespace

// Also for a driver that did not start, so it asks the library and not the table of functions.
std::string describe(abi::Result result) {
  const SharedObject object = library();
  const auto text = [&](const char* function_name) -> std::string {
    abi::Result (*function)(abi::Result, const char**) = nullptr;
    const char* words = nullptr;
    if (!object.find(function_name, function)) return "";
    return function(result, &words) == abi::Result::success && words != nullptr ? words : "";
  };
  const std::string name = text("cuGetErrorName");
  if (name.empty()) return concat("error ", static_cast<int>(result));
  return concat(name, " (", text("cuGetErrorString"), ")");
}

void fail(const char* call, abi::Result result) {
  const std::string message = concat(call, " failed: ", describe(result));
  if (result == abi::Result::out_of_memory) throw OutOfMemory(message);
  throw CudaError(message, result);
}

int installed_version() {
  Start start;
  int version = 0;
  const bool known = library().find("cuDriverGetVersion", start.get_version) &&
                     start.get_version(&version) == abi::Result::success;
  return known ? version : 0;
}

Found load() {
  SharedObject object = library();
  Start start;
  if (!object) {
    return {.missing = concat("there is no NVIDIA driver: ", object.error(),
                              "; install driver 525 or later, or name the library with "
                              "STROBE_CUDA_DRIVER")};
  }
  Found found{.path = object.path()};
  if (!object.find("cuDriverGetVersion", start.get_version) || !object.find("cuInit", start.init)) {
    found.missing = concat(found.path,
                           " is not NVIDIA's driver library; STROBE_CUDA_DRIVER names "
                           "another");
    return found;
  }
  // Before cuInit, which fails on its own ground where the driver is too old for the GPU.
  if (start.get_version(&found.version) != abi::Result::success || found.version < kOldestVersion) {
    found.missing = concat("the NVIDIA driver is too old: it supports CUDA ",
                           version_text(found.version), ", wanted is CUDA ",
                           version_text(kOldestVersion), " or later; install driver 525 or later");
    return found;
  }
  if (const abi::Result result = start.init(0); result != abi::Result::success) {
    found.missing = why_not_started(result);
    return found;
  }
  auto api = std::make_unique<const Api>(std::move(object));
  if (!api->missing().empty()) {
    found.missing = concat("the NVIDIA driver lacks ", joined(api->missing(), ", "),
                           "; install driver 525 or later");
    return found;
  }
  int devices = 0;
  if (api->cuDeviceGetCount.unchecked(&devices) != abi::Result::success || devices == 0) {
    found.missing = why_not_started(abi::Result::no_device);
    return found;
  }
  found.api = std::move(api);
  return found;
}

const Found& found() {
  // Never destroyed: what is freed at the end of the process still asks for it.
  static const Found& once = *new Found(load());
  return once;
}

const Api& api() {
  const Found& driver = found();
  if (!driver.api) throw Unsupported("the CUDA backend", {driver.missing});
  return *driver.api;
}

}  // namespace strobe::cuda::driver
