#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/wide.h"
#include "strobe/error.h"

namespace strobe::cuda {

/// What every array in a workspace is aligned to. A workspace itself may be aligned to less.
inline constexpr std::int64_t kWorkspaceAlignment = 256;

/// Hands out a workspace from its beginning.
class WorkspacePlan {
 public:
  /// The offset of an array. Throws OutOfMemory where no address would reach its end.
  std::size_t take(std::int64_t bytes) {
    const strobe::Wide end = (strobe::Wide{end_} + bytes + kWorkspaceAlignment - 1) /
                             kWorkspaceAlignment * kWorkspaceAlignment;
    if (end > std::numeric_limits<std::int64_t>::max() / 2)
      throw OutOfMemory("the workspace would be larger than any memory");
    const std::int64_t offset = end_;
    end_ = static_cast<std::int64_t>(end);
    return static_cast<std::size_t>(offset);
  }

  /// To ask for, with room to align the beginning; 0 if nothing was taken.
  std::size_t bytes() const {
    return static_cast<std::size_t>(end_ == 0 ? 0 : end_ + kWorkspaceAlignment);
  }

 private:
  std::int64_t end_ = 0;
};

/// Where offsets of the plan count from.
inline std::byte* aligned_workspace(void* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  constexpr auto kStep = static_cast<std::uintptr_t>(kWorkspaceAlignment);
  return static_cast<std::byte*>(workspace) + (kStep - address % kStep) % kStep;
}

}  // namespace strobe::cuda
