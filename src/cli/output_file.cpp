#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "strobe/error.h"

namespace strobe::cli {
namespace {

[[noreturn]] void refuse_output(const std::string& option, const std::string& path,
                                const std::string& why) {
  throw InvalidArgument(option, fmt::format("'{}' {}", path, why));
}

[[noreturn]] void refuse_to_write(const std::string& option, const std::string& path, int reason) {
  refuse_output(option, path, fmt::format("cannot be written: {}", std::strerror(reason)));
}

}  // namespace

std::filesystem::path existing_part(std::filesystem::path folder) {
  while (!folder.empty() && !std::filesystem::exists(folder)) folder = folder.parent_path();
  return folder;
}

void require_writable(const std::string& option, const std::string& path,
                      std::filesystem::path folder) {
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK) != 0) refuse_to_write(option, path, errno);
}

void require_output(const std::string& option, const std::string& path, bool force) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::exists(path, none)) {
    if (!fs::is_regular_file(path, none)) refuse_output(option, path, "is not a file");
    if (!force) {
      refuse_output(option, path,
                    "exists already; name another file, or add --force to replace it");
    }
  }
  require_writable(option, path, fs::path(path).parent_path());
}

bool same_place(const std::filesystem::path& one, const std::filesystem::path& other) {
  const auto place = [](const std::filesystem::path& path) {
    const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path));
    return whole.has_filename() ? whole : whole.parent_path();  // "folder/"
  };
  return place(one) == place(other);
}

void require_own_file(const std::string& option, const std::string& path, const std::string& other,
                      const std::string& other_path) {
  if (!path.empty() && !other_path.empty() && same_place(path, other_path)) {
    refuse_output(option, path, fmt::format("is what {} writes; name another file", other));
  }
}

void write_output(const std::string& option, const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(draft.c_str(), "wx");
  if (file == nullptr) refuse_to_write(option, path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(draft.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  std::remove(draft.c_str());
  refuse_to_write(option, path, reason);
}

}  // namespace strobe::cli
