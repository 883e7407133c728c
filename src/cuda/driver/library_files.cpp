#include "cuda/driver/library_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/shared_object.h"

namespace strobe::cuda {
namespace {

namespace fs = std::filesystem;

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
  folders.push_back(root / "extras/CUPTI/lib64");
  for (auto& folder : folders_beneath(root / "targets", "lib")) folders.push_back(folder);
}

std::vector<fs::path> folders_to_search() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const root = std::getenv(variable);
    if (root != nullptr && *root != '\0') add_toolkit(folders, root);
  }
  add_toolkit(folders, "/usr/local/cuda");
  // Packages of Python: nvidia/cuda_nvrtc/lib of CUDA 12, nvidia/cu13/lib of CUDA 13. They lie
  // beside ours, if this library is in one, and where scripts/setup unpacks them.
  const fs::path self = file_of_code(reinterpret_cast<const void*>(&folders_to_search));
  for (const fs::path& packages : {self.parent_path().parent_path(), fs::path(STROBE_DEPS)}) {
    for (auto& folder : folders_beneath(packages / "nvidia", "lib")) folders.push_back(folder);
  }
  return folders;
}

}  // namespace

std::vector<std::string> library_files(const std::vector<std::string>& names) {
  std::vector<std::string> paths = names;
  std::error_code none;
  for (const fs::path& folder : folders_to_search()) {
    for (const std::string& name : names) {
      if (fs::exists(folder / name, none)) paths.push_back(folder / name);
    }
  }
  return paths;
}

}  // namespace strobe::cuda
