#include "measure/user_folder.h"

#include <cstdlib>

namespace strobe::lab {

std::filesystem::path user_folder(const char* own, const char* xdg, const char* fallback) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  if (auto folder = variable(own); !folder.empty()) return folder;
  if (const auto folder = variable(xdg); !folder.empty()) return folder / "strobe";
  return variable("HOME") / fallback / "strobe";
}

}  // namespace strobe::lab
