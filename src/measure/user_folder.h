#pragma once

#include <filesystem>

namespace strobe::lab {

/// Where files of this user are kept: the folder that the variable `own` names, or strobe/ in the
/// one that the variable `xdg` names, or strobe/ in `fallback` in the user's home.
std::filesystem::path user_folder(const char* own, const char* xdg, const char* fallback);

}  // namespace strobe::lab
