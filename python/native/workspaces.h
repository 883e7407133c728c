#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "strobe/tensor.h"

namespace strobe::python {

using Memory = std::shared_ptr<std::byte>;

/// Aligned to 64 bytes; nothing for 0 bytes. Throws OutOfMemory.
Memory allocate(std::size_t bytes, Device device);

/// Memory that calls on the CPU compute with, kept from one to the next: as many blocks as calls
/// that ran at once, each as large as the largest of its calls.
class Workspaces {
 public:
  /// Goes back when the last owner lets go of it.
  Memory take(std::size_t bytes);

  /// Frees what is in nobody's hands.
  void clear();

 private:
  struct Block {
    Memory memory{};
    std::size_t bytes = 0;
  };
  void put_back(Block block);

  std::mutex mutex_{};
  std::vector<Block> free_{};
};

Workspaces& workspaces();

}  // namespace strobe::python
