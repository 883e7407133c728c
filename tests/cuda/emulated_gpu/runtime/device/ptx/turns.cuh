#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline void wait_for_turn(const unsigned* count, unsigned turn) {
  if (*count != turn) {
    // Blocks run one after the other.
    emulated::Block::current->fail("waits for the turn of a block that comes later");
  }
}

inline void show_stores() {
  const auto& units = emulated::Block::thread->units;
  if (!units.stores.empty() || !units.open_stores.empty()) {
    emulated::Block::current->fail("passes its turn before its stores have been written");
  }
}

inline void pass_turn(unsigned* count) {
  show_stores();
  ++*count;
}

inline unsigned take_turn(unsigned* count) {
  return (*count)++;
}

}  // namespace strobe::cuda::ptx
