#pragma once

#include "device/ptx/mbarrier.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

template <int axes>
struct BoxAt {
  int at[axes];
};
using BoxOrigin = BoxAt<4>;

namespace ptx {

enum class CachePolicy { evict_first, evict_last };

inline void prefetch_map(const TensorMap&) {}

inline emulated::TiledTensor tiled_tensor(const TensorMap& map, int axes) {
  emulated::TiledTensor tensor;
  std::memcpy(&tensor, &map, sizeof tensor);
  if (tensor.mark != emulated::TiledTensor::kMark) {
    emulated::Block::current->fail("a tensor map does not come from the driver");
  }
  if (tensor.rank != axes) {
    emulated::Block::current->fail("a box has another number of axes than its tensor map");
  }
  return tensor;
}

inline int box_lines(const emulated::TiledTensor& tensor) {
  int lines = 1;
  for (int axis = 1; axis < tensor.rank; ++axis) lines *= tensor.box[axis];
  return lines;
}

inline int box_bytes(const emulated::TiledTensor& tensor) {
  return box_lines(tensor) * tensor.box[0] * tensor.element_bytes;
}

/// Calls visit(where in shared memory, where in the tensor or null) for every element of a box.
template <int axes, class Visit>
void each_element(const emulated::TiledTensor& tensor, const BoxAt<axes>& origin, Word shared,
                  Visit visit) {
  if (shared % 128 != 0) {
    emulated::Block::current->fail("a box lies between multiples of 128 bytes");
  }
  for (int i = 0; i < box_lines(tensor) * tensor.box[0]; ++i) {
    char* there = tensor.data;
    for (int axis = 0, rest = i; axis < axes; rest /= tensor.box[axis], ++axis) {
      const long long at = static_cast<long long>(origin.at[axis]) + rest % tensor.box[axis];
      if (at < 0 || at >= tensor.sizes[axis]) there = nullptr;
      if (there != nullptr) there += at * static_cast<long long>(tensor.strides[axis]);
    }
    const int line = i / tensor.box[0] * tensor.line_bytes;
    const int column = i % tensor.box[0] * tensor.element_bytes;
    const Word plain = shared + static_cast<Word>(line + column);
    visit(plain ^ (plain >> 7 & (tensor.line_bytes / 16 - 1)) << 4, there);
  }
}

template <int axes>
void load_box(Word to, const TensorMap& map, const BoxAt<axes>& origin, Word address, CachePolicy) {
  emulated::Block& block = *emulated::Block::current;
  const emulated::TiledTensor tensor = tiled_tensor(map, axes);
  if (!memory_barrier(address).shown) {
    block.fail("a box is loaded with a barrier that was not shown to the unit");
  }
  const auto perform = [=] {
    each_element(tensor, origin, to, [&](Word at, const char* from) {
      char* const place = emulated::Block::current->shared(at, tensor.element_bytes);
      if (from != nullptr)
        std::memcpy(place, from, tensor.element_bytes);
      else
        std::memset(place, 0, tensor.element_bytes);
    });
    emulated::MemoryBarrier& barrier = memory_barrier(address);
    barrier.bytes -= box_bytes(tensor);
    end_phase_if_complete(barrier);
    emulated::Block::current->made_progress();
  };
  if (block.random() % 2 == 0)
    perform();
  else
    block.units.loads.push_back({address, perform});
  block.made_progress();  // whoever waits for the box can go on, if not in this turn
}

inline void store_box(const TensorMap& map, const BoxOrigin& origin, Word from) {
  const emulated::TiledTensor tensor = tiled_tensor(map, 4);
  const auto data = std::make_shared<std::vector<char>>();
  const auto read = [=] {
    each_element(tensor, origin, from, [&](Word at, const char*) {
      emulated::Block& block = *emulated::Block::current;
      if (block.units.unseen[at / 16] > 0) {
        block.fail("a box is stored that was written and not shown to the unit");
      }
      const char* const place = block.shared(at, tensor.element_bytes);
      data->insert(data->end(), place, place + tensor.element_bytes);
    });
  };
  const auto write = [=] {
    const char* element = data->data();
    each_element(tensor, origin, from, [&](Word, char* to) {
      if (to != nullptr) std::memcpy(to, element, tensor.element_bytes);
      element += tensor.element_bytes;
    });
  };
  emulated::Block::thread->units.open_stores.push_back({read, write});
}

inline void add_floats(float* to, Word from, int bytes) {
  if (from % 16 != 0 || bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(to) % 16 != 0) {
    emulated::Block::current->fail("floats are added between multiples of 16 bytes");
  }
  const auto data = std::make_shared<std::vector<float>>();
  const auto read = [=] {
    emulated::Block& block = *emulated::Block::current;
    for (Word at = from; at < from + static_cast<Word>(bytes); at += 4) {
      if (block.units.unseen[at / 16] > 0) {
        block.fail("floats are added that were written and not shown to the unit");
      }
      data->push_back(emulated::bits<float>(load_shared<Word>(at)));
    }
  };
  const auto write = [=] {
    for (std::size_t i = 0; i < data->size(); ++i) to[i] += (*data)[i];
  };
  emulated::Block::thread->units.open_stores.push_back({read, write});
}

inline void read_for_stores(std::vector<emulated::Store>& stores) {
  for (emulated::Store& store : stores) {
    if (!std::exchange(store.has_read, true)) store.read();
  }
}

inline void commit_stores() {
  auto& units = emulated::Block::thread->units;
  for (auto& store : std::exchange(units.open_stores, {})) units.stores.push_back(std::move(store));
  if (emulated::Block::current->random() % 2 == 0) read_for_stores(units.stores);
}

inline void wait_until_stores_have_read() {
  read_for_stores(emulated::Block::thread->units.stores);
}

inline void wait_for_stores() {
  wait_until_stores_have_read();
  for (auto& store : std::exchange(emulated::Block::thread->units.stores, {})) store.write();
}

inline void fence_async_proxy() {
  auto& units = emulated::Block::thread->units;
  for (const unsigned chunk : std::exchange(units.written, {})) {
    --emulated::Block::current->units.unseen[chunk];
  }
}

}  // namespace ptx
}  // namespace strobe::cuda
