#pragma once

#include <cstdlib>
#include <filesystem>

// In the header alone: the engine and the laboratory, which sees only what the engine exports, keep
// files in the same places.
namespace strobe {

/// Where files of this user are kept: the folder that the variable `own` names, or strobe/ in the
/// one that the variable `xdg` names, or strobe/ in `fallback` in the user's home.
inline std::filesystem::path user_folder(const char* own, const char* xdg, const char* fallback) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  if (auto folder = variable(own); !folder.empty()) return folder;
  if (const auto folder = variable(xdg); !folder.empty()) return folder / "strobe";
  return variable("HOME") / fallback / "strobe";
}

/// For what can be made again.
inline std::filesystem::path cache_folder() {
  return user_folder("STROBE_CACHE_DIR", "XDG_CACHE_HOME", ".cache");
}

}  // namespace strobe
