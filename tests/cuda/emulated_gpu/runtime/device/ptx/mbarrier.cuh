#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline emulated::MemoryBarrier& memory_barrier(Word address) {
  auto& barriers = emulated::Block::current->units.barriers;
  const auto found = barriers.find(address);
  if (found == barriers.end()) {
    emulated::Block::current->fail("a barrier is used that nobody has initialised");
  }
  return found->second;
}

inline void end_phase_if_complete(emulated::MemoryBarrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.arrivals;
  ++barrier.phase;
}

inline void arrive_with(emulated::MemoryBarrier& barrier, int bytes) {
  if (barrier.missing == 0) {
    emulated::Block::current->fail("more arrive at a barrier than it was made for");
  }
  barrier.bytes += bytes;
  --barrier.missing;
  end_phase_if_complete(barrier);
  emulated::Block::current->made_progress();
  emulated::Block::current->linger();
}

inline void init_barrier(Word address, int arrivals) {
  emulated::Block::current->shared(address, 8);
  emulated::Block::current->units.barriers[address] = {.arrivals = arrivals, .missing = arrivals};
}

inline void fence_barrier_init() {
  for (auto& [address, barrier] : emulated::Block::current->units.barriers) barrier.shown = true;
}

inline void arrive(Word address) {
  arrive_with(memory_barrier(address), 0);
}

inline void arrive_and_expect(Word address, int bytes) {
  arrive_with(memory_barrier(address), bytes);
}

inline void wait_for_phase(Word address, Word parity) {
  emulated::MemoryBarrier& barrier = memory_barrier(address);
  emulated::Block::current->wait_until([&] {
    if (barrier.phase % 2 != parity) return true;
    if (barrier.missing > 0) return false;
    // Nothing but copies is missing, so now they must come.
    auto& loads = emulated::Block::current->units.loads;
    for (std::size_t i = 0; i < loads.size();) {
      if (loads[i].barrier != address) {
        ++i;
        continue;
      }
      const auto perform = std::move(loads[i].perform);
      loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(i));
      perform();
    }
    return barrier.phase % 2 != parity;
  });
}

}  // namespace strobe::cuda::ptx
