#include "cuda/jit/disk_cache.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "core/user_folder.h"
#include "cuda/jit/hash.h"
#include "cuda/jit/kept_files.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";

/// At the start of a file; key, resources and cubin follow.
struct FileHeader {
  char magic[8] = {'S', 'T', 'R', 'B', 'C', 'U', 'B', 'N'};
  std::uint32_t version = 2;
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
  const std::string bytes = read_kept_file(path);
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

}  // namespace

fs::path DiskCache::path_of(const std::string& key) const {
  return folder_ / concat(hash_text(hash_of(key)), kSuffix);
}

std::optional<Binary> DiskCache::find(const std::string& key) const {
  auto file = read(path_of(key));
  if (!file || file->key != key) return std::nullopt;
  return std::move(file->binary);
}

std::string DiskCache::unreadable(const std::string& key) const {
  if (!may_not_be_read(path_of(key))) return "";
  return concat(
      "compiled kernels are there that this user may not read, so each process compiles "
      "them again: ",
      folder_.string(),
      "; let others read the folder and its files, or name another folder with "
      "STROBE_CACHE_DIR");
}

std::string DiskCache::keep(const std::string& key, const Binary& binary) const {
  const std::string trouble =
      write_beside_and_rename(path_of(key), serialize({.key = key, .binary = binary}));
  if (trouble.empty()) return "";
  return concat("compiled kernels are not kept, so each process compiles them again: ",
                folder_.string(), ": ", trouble, "; STROBE_CACHE_DIR names another folder");
}

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> all;
  for (const fs::path& path : kept_files(folder_, kSuffix)) {
    auto file = read(path);
    if (!file || path_of(file->key) != path) continue;
    all.push_back(
        {.path = path, .key = std::move(file->key), .bytes = bytes_of(path), .age = age_of(path)});
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.age < b.age; });
  return all;
}

std::int64_t DiskCache::clear() const {
  return remove_kept_files(folder_, kSuffix);
}

DiskCache user_cache() {
  return DiskCache(cache_folder() / "kernels");
}

}  // namespace strobe::cuda::jit
