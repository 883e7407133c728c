#pragma once
// The units of a multiprocessor since Hopper that work on their own while threads go on: those that
// copy tensors and multiply matrices, and the barriers that tell of them. What they do happens by
// chance either at once or as late as it may.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace emulated {

/// A tensor and its box, in the 128 bytes that the driver makes and a kernel hands on.
struct TiledTensor {
  static constexpr std::uint32_t kMark = 0x7E50A9F1;

  char* data;
  std::uint32_t mark;
  std::uint16_t rank;
  std::uint8_t element_bytes;
  std::uint8_t line_bytes;  ///< of the swizzle
  std::array<std::uint32_t, 5> sizes;
  std::array<std::uint16_t, 5> box;
  std::array<std::uint64_t, 5> strides;  ///< in bytes, of all axes
};
static_assert(sizeof(TiledTensor) <= 128);

/// A barrier in shared memory.
struct MemoryBarrier {
  int arrivals = 0;  ///< of a phase
  int missing = 0;   ///< of them
  long bytes = 0;    ///< announced that have not come
  unsigned phase = 0;
  bool shown = false;  ///< to the unit that copies
};

/// A copy to shared memory that is under way.
struct Load {
  unsigned barrier;
  std::function<void()> perform;
};

/// A copy from shared memory.
struct Store {
  std::function<void()> read;
  std::function<void()> write;
  bool has_read = false;
};

/// A barrier of a block's threads.
struct NamedBarrier {
  int threads = 0;
  int arrived = 0;
  long generation = 0;
  bool any = false;
  bool result = false;
  std::vector<bool> here{};
};

/// Registers that products under way add to, and what they add up to.
struct Sums {
  std::vector<float> values{};
  int products = 0;
};

struct Product {
  float* sums;
  std::function<void(std::vector<float>&)> compute;
};

/// What the units do for one thread.
struct ThreadUnits {
  bool fenced = false;              ///< registers, for products
  std::vector<unsigned> written{};  ///< chunks of shared memory that it has not shown to the units
  std::vector<Store> open_stores{};
  std::vector<Store> stores{};  ///< of groups that are closed
  std::vector<Product> open_products{};
  std::vector<std::vector<Product>> groups{};
  std::size_t computed = 0;  ///< of the groups
  std::map<float*, Sums> sums{};
  unsigned commits = 0;
};

/// And for the block.
struct BlockUnits {
  std::map<unsigned, MemoryBarrier> barriers{};
  std::array<NamedBarrier, 16> named{};
  std::vector<Load> loads{};
  /// How often each chunk of shared memory was written and not shown to the units yet.
  std::vector<int> unseen{};
};

}  // namespace emulated
