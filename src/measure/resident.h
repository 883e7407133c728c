#pragma once

#include <cstdint>
#include <optional>

namespace strobe::lab {

/// Bytes of memory that this process occupies; nothing where the system does not tell.
std::optional<std::int64_t> resident_bytes();

/// Watches how far the memory that this process really occupies grows, allocations behind the
/// laboratory's back included.
class ResidentWatch {
 public:
  /// Begins to watch.
  ResidentWatch();

  /// Bytes that the peak since then lies above where it began; nothing where the system does not
  /// tell.
  std::optional<std::int64_t> growth() const;

 private:
  std::optional<std::int64_t> start_{};
};

}  // namespace strobe::lab
