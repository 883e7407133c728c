#include "cuda/jit/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/text.h"
#include "core/user_folder.h"
#include "cuda/jit/hash.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kUnfinished = ".kernel.";  // and what mkstemp makes of six X

/// At the start of a file; key, resources and cubin follow.
struct FileHeader {
  char magic[8] = {'S', 'T', 'R', 'B', 'C', 'U', 'B', 'N'};
  std::uint32_t version = 1;
  std::uint32_t key_bytes = 0;
  std::uint32_t resource_bytes = 0;
  std::uint32_t zero = 0;
  std::uint64_t cubin_bytes = 0;
  std::uint64_t checksum = 0;  // of all that follows

  std::uint64_t total_bytes() const {
    return sizeof *this + key_bytes + resource_bytes + cubin_bytes;
  }
};

struct File {
  std::string key{};
  Binary binary{};
};

std::string serialize(const File& file) {
  const std::string resources = write_resources(file.binary.resources);
  const std::string body = file.key + resources + file.binary.cubin;
  FileHeader header;
  header.key_bytes = static_cast<std::uint32_t>(file.key.size());
  header.resource_bytes = static_cast<std::uint32_t>(resources.size());
  header.cubin_bytes = file.binary.cubin.size();
  header.checksum = hash_of(body);
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + body;
}

/// Nothing if the file is torn, foreign, of another version or not there.
std::optional<File> read(const fs::path& path) {
  std::ostringstream stream;
  if (!(stream << std::ifstream(path, std::ios::binary).rdbuf())) return std::nullopt;
  const std::string bytes = std::move(stream).str();
  const FileHeader expected;
  FileHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.version != expected.version || header.total_bytes() != bytes.size() ||
      header.checksum != hash_of(std::string_view(bytes).substr(sizeof header))) {
    return std::nullopt;
  }
  const std::size_t resources = sizeof header + header.key_bytes;
  const std::size_t cubin = resources + header.resource_bytes;
  return File{
      .key = bytes.substr(sizeof header, header.key_bytes),
      .binary = {.cubin = bytes.substr(cubin),
                 .resources = read_resources(bytes.substr(resources, header.resource_bytes))}};
}

/// The regular files of a folder that bear our names, finished or not.
std::vector<fs::path> own_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    const bool ours = name.ends_with(kSuffix) || name.find(kUnfinished) != std::string::npos;
    if (ours && entry.is_regular_file(none)) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

std::string write_beside_and_rename(const fs::path& path, const std::string& bytes) {
  const auto system_text = [](int code) { return std::generic_category().message(code); };
  std::string fresh = path.string() + ".XXXXXX";
  const int file = mkstemp(fresh.data());
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

fs::path DiskCache::path_of(const std::string& key) const {
  return folder_ / concat(hash_text(hash_of(key)), kSuffix);
}

std::optional<Binary> DiskCache::find(const std::string& key) const {
  auto file = read(path_of(key));
  if (!file || file->key != key) return std::nullopt;
  return std::move(file->binary);
}

std::string DiskCache::keep(const std::string& key, const Binary& binary) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string trouble =
      error ? error.message()
            : write_beside_and_rename(path_of(key), serialize({.key = key, .binary = binary}));
  if (trouble.empty()) return "";
  return concat("compiled kernels are not kept, so each process compiles them again: ",
                folder_.string(), ": ", trouble, "; STROBE_CACHE_DIR names another folder");
}

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> all;
  for (const fs::path& path : own_files(folder_)) {
    auto file = read(path);
    if (!file || path_of(file->key) != path) continue;
    std::error_code gone;
    const auto bytes = static_cast<std::int64_t>(fs::file_size(path, gone));
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path, gone);
    all.push_back({.path = path,
                   .key = std::move(file->key),
                   .bytes = bytes,
                   .age = std::chrono::duration_cast<std::chrono::seconds>(age)});
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.age < b.age; });
  return all;
}

std::int64_t DiskCache::clear() const {
  std::int64_t bytes = 0;
  std::error_code gone;
  for (const fs::path& path : own_files(folder_)) {
    const auto size = fs::file_size(path, gone);
    if (!gone && fs::remove(path, gone)) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

DiskCache user_cache() {
  return DiskCache(cache_folder() / "kernels");
}

}  // namespace strobe::cuda::jit
