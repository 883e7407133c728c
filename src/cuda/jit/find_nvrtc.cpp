#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/library_files.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::jit {
namespace {

/// The latest first, unless the driver is older and could not load what that compiles.
std::vector<std::string> names() {
  const int driver = driver::installed_version();
  if (driver > 0 && driver < 13000) return {"libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"};
  return {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
}

}  // namespace

FoundNvrtc load_nvrtc() {
  SharedObject object(library_files(names()), "STROBE_NVRTC");
  if (!object) {
    return {.missing = concat("there is no NVRTC, the compiler of GPU kernels: ", object.error(),
                              "; install CUDA 12.0 or later or its package nvidia-cuda-nvrtc, and "
                              "name libnvrtc.so with STROBE_NVRTC if it is in no usual place")};
  }
  auto nvrtc = std::make_unique<const Nvrtc>(std::move(object));
  if (!nvrtc->trouble().empty()) return {.missing = nvrtc->trouble()};
  return {.nvrtc = std::move(nvrtc)};
}

}  // namespace strobe::cuda::jit
