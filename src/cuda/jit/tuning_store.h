#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/driver/device.h"
#include "strobe/implementation.h"

// Which way to cut a problem was measured to be the fastest.
namespace strobe::cuda::jit {

/// All that such a measurement depends on.
struct TuningKey {
  std::string gpu{};  ///< "NVIDIA H200"
  std::string architecture{};
  std::string compiler{};  ///< "NVRTC 13.0"
  std::string kernel{};
  std::string sources{};  ///< of the kernel, as sources_text tells them apart
  std::string options{};  ///< that make it another kernel: "deterministic"
  std::string problem{};  ///< its text form

  bool operator==(const TuningKey&) const = default;
};

/// Winners in a folder, a file for each problem. So processes that tune different problems at once
/// do not overwrite each other's, as they would in one file for all. A file is written beside and
/// renamed; what is torn, foreign or of another version counts as not there.
class TuningStore {
 public:
  explicit TuningStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// Returns a sentence that says why it could not be kept, "" if it could.
  std::string keep(const TuningKey& key, const TunedVariant& tuned) const;
  void forget(const TuningKey& key) const;

  struct Entry {
    std::filesystem::path path{};
    TuningKey key{};
    TunedVariant tuned{};
    std::int64_t bytes = 0;
    std::chrono::seconds age{};
  };

  /// Every file that is whole, the newest first.
  std::vector<Entry> entries() const;

  /// Removes every file of its own. Returns how many bytes that were.
  std::int64_t clear() const;

 private:
  std::filesystem::path path_of(const TuningKey& key) const;

  std::filesystem::path folder_;
};

/// That of this user: tuned/ in the cache folder.
TuningStore user_tuning();

/// What a kernel asks with when it plans.
struct Tunable {
  const driver::Device& device;
  std::string_view kernel;   ///< "hopper_forward"
  std::string_view source;   ///< "kernels/hopper_forward/kernel.cu"
  std::string_view options;  ///< as of TuningKey
  const Problem& problem;
};

/// The variant that was tuned for it, if one was. The store is read once in a process; where it is
/// empty, asking costs nothing.
std::optional<std::string> tuned_variant(const Tunable& what);

/// Keeps it, or forgets what was kept. Throws Error if that cannot be done.
void keep_tuned_variant(const Tunable& what, const std::optional<TunedVariant>& tuned);

}  // namespace strobe::cuda::jit
