#include "cuda/jit/kept_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>

#include "core/text.h"
#include "cuda/jit/hash.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

/// Makes a file that nobody else has, and sets its name, which begins with the path. mkstemp would
/// do the same, but for this user alone: others may read what the umask lets them.
int make_beside(const fs::path& path, std::string& name) {
  constexpr int kTries = 100;
  constexpr int kForAll = 0666;
  std::random_device random;
  int file = -1;
  for (int i = 0; i < kTries && file < 0; ++i) {
    name = concat(path.string(), ".", hash_text(random()));
    file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kForAll);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

}  // namespace

std::string write_beside_and_rename(const fs::path& path, const std::string& bytes) {
  const auto system_text = [](int code) { return std::generic_category().message(code); };
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return error.message();
  std::string fresh;
  const int file = make_beside(path, fresh);
  if (file < 0) return system_text(errno);
  std::size_t done = 0;
  int trouble = 0;
  while (done < bytes.size() && trouble == 0) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      trouble = errno;
  }
  if (close(file) != 0 && trouble == 0) trouble = errno;  // some file systems notice no sooner
  if (trouble == 0 && std::rename(fresh.c_str(), path.c_str()) != 0) trouble = errno;
  if (trouble == 0) return "";
  unlink(fresh.c_str());
  return system_text(trouble);
}

std::string read_kept_file(const fs::path& path) {
  std::ostringstream stream;
  stream << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(stream).str();
}

bool may_not_be_read(const fs::path& path) {
  return access(path.c_str(), R_OK) != 0 && errno == EACCES;
}

std::vector<fs::path> kept_files(const fs::path& folder, std::string_view suffix) {
  const std::string unfinished = concat(suffix, ".");  // and some digits
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    const bool ours = name.ends_with(suffix) || name.find(unfinished) != std::string::npos;
    if (ours && entry.is_regular_file(none)) files.push_back(entry.path());
  }
  return files;
}

std::int64_t remove_kept_files(const fs::path& folder, std::string_view suffix) {
  std::int64_t bytes = 0;
  for (const fs::path& path : kept_files(folder, suffix)) {
    const std::int64_t size = bytes_of(path);
    std::error_code gone;
    if (fs::remove(path, gone)) bytes += size;
  }
  return bytes;
}

std::int64_t bytes_of(const fs::path& path) {
  std::error_code gone;
  const auto bytes = fs::file_size(path, gone);
  return gone ? 0 : static_cast<std::int64_t>(bytes);
}

std::chrono::seconds age_of(const fs::path& path) {
  std::error_code gone;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path, gone);
  return std::chrono::duration_cast<std::chrono::seconds>(age);
}

}  // namespace strobe::cuda::jit
