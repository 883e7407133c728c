#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "core/text.h"
#include "core/wide.h"
#include "strobe/error.h"

namespace strobe::reference {

/// Hands out a workspace from its beginning.
class Arena {
 public:
  /// `user` is who needs it, for the error.
  explicit Arena(std::string_view user) : user_(user) {}

  /// As whole cache lines.
  static Wide padded(Wide bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  /// The offset of so many bytes. Throws OutOfMemory if offsets do not reach so far.
  std::int64_t take(Wide bytes) {
    const std::int64_t offset = bytes_;
    const Wide end = bytes_ + padded(bytes);
    if (end > std::numeric_limits<std::int64_t>::max()) {
      throw OutOfMemory(concat(user_, " needs a workspace of more than 2^63 bytes here"));
    }
    bytes_ = static_cast<std::int64_t>(end);
    return offset;
  }

  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr int kAlignment = 64;

  std::string_view user_;
  std::int64_t bytes_ = 0;
};

}  // namespace strobe::reference
