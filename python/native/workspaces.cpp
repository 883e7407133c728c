#include "workspaces.h"

#include <new>
#include <utility>

#include "core/text.h"
#include "strobe/accelerator.h"
#include "strobe/error.h"

namespace strobe::python {

Memory allocate(std::size_t bytes, Device device) {
  constexpr std::align_val_t kAlignment{64};
  if (bytes == 0) return nullptr;
  if (device.kind != Device::Kind::cpu) return accelerator(device).allocate(bytes);
  if (auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)))
    return {memory, [](std::byte* held) { ::operator delete(held, kAlignment); }};
  throw OutOfMemory(concat("no memory for ", bytes, " bytes"));
}

Memory Workspaces::take(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Block block;
  {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      block = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (block.bytes < bytes) {
    block = {};  // first, so that the two are never there at once
    block = {allocate(bytes, {}), bytes};
  }
  std::byte* const data = block.memory.get();
  return {data, [this, block = std::move(block)](std::byte*) { put_back(block); }};
}

void Workspaces::put_back(Block block) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(block));
}

void Workspaces::clear() {
  const std::scoped_lock lock(mutex_);
  free_.clear();
}

Workspaces& workspaces() {
  // Never destroyed: threads that still compute while the interpreter ends give their blocks back.
  static auto* const all = new Workspaces;
  return *all;
}

}  // namespace strobe::python
