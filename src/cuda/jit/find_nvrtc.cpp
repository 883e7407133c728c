#include <cstdlib>

#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/library_files.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::jit {
namespace {

constexpr int kOldestMajor = 12;

/// The latest first, unless the driver is older and could not load what that compiles.
std::vector<std::string> names(int driver) {
  if (driver > 0 && driver < 13000) return {"libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"};
  return {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
}

/// Why what it compiles would be of no use; "" if it would. A driver that is too old for any kernel
/// says nothing about the compiler.
std::string why_not(const Nvrtc& nvrtc, int driver) {
  if (!nvrtc.trouble().empty()) return nvrtc.trouble();
  const int major = driver / 1000;
  if (major < kOldestMajor || std::stoi(nvrtc.version()) <= major) return "";
  return concat(nvrtc.path(), " is NVRTC ", nvrtc.version(), ", wanted is none later than CUDA ",
                major,
                " of the driver, which would not load its kernels; update the driver, or "
                "install NVRTC ",
                major, "; what STROBE_NVRTC names is taken all the same");
}

}  // namespace

FoundNvrtc first_that_serves(const std::vector<std::string>& files, int driver) {
  std::string not_there;
  std::string of_no_use;
  for (const std::string& file : files) {
    SharedObject object({file});
    if (!object) {
      not_there = object.error();
      continue;
    }
    auto nvrtc = std::make_unique<const Nvrtc>(std::move(object));
    const std::string why = why_not(*nvrtc, driver);
    if (why.empty()) return {.nvrtc = std::move(nvrtc)};
    if (of_no_use.empty()) of_no_use = why;
  }
  if (!of_no_use.empty()) return {.missing = of_no_use};
  return {.missing = concat("there is no NVRTC, the compiler of GPU kernels: ", not_there,
                            "; install CUDA 12.0 or later or its package nvidia-cuda-nvrtc, and "
                            "name libnvrtc.so with STROBE_NVRTC if it is in no usual place")};
}

FoundNvrtc load_nvrtc() {
  const char* const chosen = std::getenv("STROBE_NVRTC");
  if (chosen != nullptr && *chosen != '\0') return first_that_serves({chosen}, 0);
  const int driver = driver::installed_version();
  return first_that_serves(library_files(names(driver)), driver);
}

}  // namespace strobe::cuda::jit
