#include "cuda/jit/known_compiler.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "core/text.h"
#include "core/user_folder.h"
#include "cuda/driver/driver.h"
#include "cuda/jit/kept_files.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

/// All that decides which library is found, but for what is installed, on one line.
std::string search() {
  std::string text = concat("driver ", driver::installed_version());
  for (const char* name : {"STROBE_NVRTC", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"}) {
    const char* const value = std::getenv(name);
    text += concat(" ", name, "=", value == nullptr ? "" : value);
  }
  return text;
}

/// What changes when another library takes the place of this one; "" if there is no such file.
std::string state_of(const std::string& path) {
  std::error_code gone;
  const auto bytes = fs::file_size(path, gone);
  const auto time = fs::last_write_time(path, gone);
  return gone ? "" : concat(bytes, " bytes ", time.time_since_epoch().count());
}

}  // namespace

std::optional<std::string> KnownCompiler::version() const {
  std::ifstream file(file_);
  std::array<std::string, 4> lines;  // search, path, state, version
  for (std::string& line : lines) {
    if (!std::getline(file, line)) return std::nullopt;
  }
  const auto& [searched, path, state, version] = lines;
  if (file.eof() || version.empty() || searched != search() || state != state_of(path)) {
    return std::nullopt;
  }
  return version;
}

void KnownCompiler::remember(const std::string& path, const std::string& version) const {
  const std::string state = state_of(path);
  if (state.empty()) return;
  write_beside_and_rename(file_, concat(search(), "\n", path, "\n", state, "\n", version, "\n"));
}

namespace {

const std::optional<std::string>& known_version() {
  static const std::optional<std::string> once = KnownCompiler(cache_folder()).version();
  return once;
}

}  // namespace

std::string compiler_version() {
  // Once the compiler is there, for whatever reason, what it says itself counts.
  static std::once_flag remembered;
  if (known_version() && !nvrtc_is_loaded()) return *known_version();
  const Nvrtc& compiler = nvrtc();
  if (known_version() != compiler.version()) {
    std::call_once(remembered, [&] {
      KnownCompiler(cache_folder()).remember(compiler.path(), compiler.version());
    });
  }
  return compiler.version();
}

std::string missing_compiler() {
  return known_version() ? "" : found_nvrtc().missing;
}

}  // namespace strobe::cuda::jit
