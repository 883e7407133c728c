#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cuda/jit/resources.h"

namespace strobe::cuda::jit {

/// A compiled kernel.
struct Binary {
  std::string cubin{};
  std::vector<Resources> resources{};  ///< of each entry
};

/// Compiled kernels in a folder, a file each, found by a key: a text that says everything the
/// result depends on. Any number of processes may use it at once: a file is written beside and
/// renamed, so it is there whole or not at all, and what does not hold exactly the key that is
/// asked for, with a payload of the right checksum, counts as not there.
class DiskCache {
 public:
  explicit DiskCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  std::optional<Binary> find(const std::string& key) const;

  /// A sentence that says so if there may be one that this user must not read, else "".
  std::string unreadable(const std::string& key) const;

  /// Returns a sentence that says why it could not be kept, "" if it could.
  std::string keep(const std::string& key, const Binary& binary) const;

  struct Entry {
    std::filesystem::path path{};
    std::string key{};
    std::int64_t bytes = 0;
    std::chrono::seconds age{};
  };

  /// Every file that is whole, the newest first.
  std::vector<Entry> entries() const;

  /// Removes every file that it, or a process that was killed while writing, has left. Returns how
  /// many bytes that were.
  std::int64_t clear() const;

 private:
  std::filesystem::path path_of(const std::string& key) const;

  std::filesystem::path folder_;
};

/// That of this user: kernels/ in the cache folder.
DiskCache user_cache();

}  // namespace strobe::cuda::jit
