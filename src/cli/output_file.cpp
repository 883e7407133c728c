#include "cli/output_file.h"

#include <fcntl.h>
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

/// False, and errno, if the file could not be written whole.
bool write_whole(std::FILE* file, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

/// Gives the draft the file's name; without `force` no other file loses it, and errno is EEXIST.
bool publish(const char* draft, const char* path, bool force) {
  if (force) return std::rename(draft, path) == 0;
  if (renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return true;
  // Some file systems, of networks above all, cannot do that, but have hard links.
  return errno == EINVAL && link(draft, path) == 0 && std::remove(draft) == 0;
}

}  // namespace

std::filesystem::path existing_part(std::filesystem::path folder) {
  namespace fs = std::filesystem;
  std::error_code none;
  while (!folder.empty() && fs::status(folder, none).type() == fs::file_type::not_found)
    folder = folder.parent_path();
  return folder;
}

bool is_there(const std::string& option, const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::none) refuse_to_write(option, path, error.value());
  return type != std::filesystem::file_type::not_found;
}

void require_writable(const std::string& option, const std::string& path,
                      const std::filesystem::path& folder) {
  const std::filesystem::path in_it = folder / ".";  // which a file does not have
  if (access(in_it.c_str(), W_OK) != 0) refuse_to_write(option, path, errno);
}

void require_output(const std::string& option, const std::string& path, bool force) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (is_there(option, path)) {
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
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    auto whole = std::filesystem::weakly_canonical(absolute, error);
    if (error) whole = absolute.lexically_normal();
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

void write_output(const std::string& option, const std::string& path, std::string_view text,
                  bool force) {
  const std::string draft = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(draft.c_str(), "wx");
  if (file == nullptr) refuse_to_write(option, path, errno);
  const bool written = write_whole(file, text);
  if (written && publish(draft.c_str(), path.c_str(), force)) return;
  const int reason = errno;
  std::remove(draft.c_str());
  if (written && reason == EEXIST) {
    refuse_output(option, path, "was made by another program meanwhile; name another file");
  }
  throw Error(fmt::format("{} '{}' cannot be written: {}", option, path, std::strerror(reason)));
}

}  // namespace strobe::cli
