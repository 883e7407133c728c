#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

/// The latest first, unless the driver is older and could not load what that compiles.
std::vector<std::string> names() {
  const int driver = driver::installed_version();
  if (driver > 0 && driver < 13000) return {"libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"};
  return {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
}

/// The folders beneath `parent`, each with `inner` after it.
std::vector<fs::path> folders_beneath(const fs::path& parent, const char* inner) {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    folders.push_back(entry.path() / inner);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Where a toolkit at `root` has its libraries.
void add_toolkit(std::vector<fs::path>& folders, const fs::path& root) {
  folders.push_back(root / "lib64");
  folders.push_back(root / "lib");
  for (auto& folder : folders_beneath(root / "targets", "lib")) folders.push_back(folder);
}

std::vector<fs::path> folders_to_search() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const root = std::getenv(variable);
    if (root != nullptr && *root != '\0') add_toolkit(folders, root);
  }
  add_toolkit(folders, "/usr/local/cuda");
  // Unpacked there by scripts/setup: nvidia/cuda_nvrtc/lib of CUDA 12, nvidia/cu13/lib of CUDA 13.
  for (auto& folder : folders_beneath(fs::path(STROBE_DEPS) / "nvidia", "lib")) {
    folders.push_back(folder);
  }
  return folders;
}

/// By plain name first: that is what the system, or the program around us, has chosen.
std::vector<std::string> candidates() {
  const std::vector<std::string> plain = names();
  std::vector<std::string> paths = plain;
  std::error_code none;
  for (const fs::path& folder : folders_to_search()) {
    for (const std::string& name : plain) {
      if (fs::exists(folder / name, none)) paths.push_back(folder / name);
    }
  }
  return paths;
}

}  // namespace

FoundNvrtc load_nvrtc() {
  SharedObject object(candidates(), "STROBE_NVRTC");
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
