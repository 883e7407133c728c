#pragma once

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

// In the header alone: the engine and the laboratory, which sees only what the engine exports, keep
// files in the same places.
namespace strobe {

/// What the variable says; "" if it is not set.
inline std::filesystem::path path_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// What HOME says, else the list of users. Who is not listed has the root folder, as if logged in
/// there: what may not be written there is told like any other folder, and nothing is left in
/// whatever folder a program was started in.
inline std::filesystem::path home_folder() {
  if (auto home = path_variable("HOME"); home.is_absolute()) return home;
  std::array<char, 16384> words{};
  passwd entry{};
  passwd* listed = nullptr;
  getpwuid_r(getuid(), &entry, words.data(), words.size(), &listed);
  const std::filesystem::path home = listed != nullptr ? listed->pw_dir : "";
  return home.is_absolute() ? home : "/";
}

/// Where files of this user are kept: the folder that the variable `own` names, or strobe/ in the
/// one that the variable `xdg` names, or strobe/ in `fallback` in the user's home. That a relative
/// `xdg` says nothing is a rule of XDG's.
inline std::filesystem::path user_folder(const char* own, const char* xdg, const char* fallback) {
  if (auto folder = path_variable(own); !folder.empty()) return folder;
  if (const auto folder = path_variable(xdg); folder.is_absolute()) return folder / "strobe";
  return home_folder() / fallback / "strobe";
}

/// For what can be made again.
inline std::filesystem::path cache_folder() {
  return user_folder("STROBE_CACHE_DIR", "XDG_CACHE_HOME", ".cache");
}

}  // namespace strobe
