#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline void wait_for_turn(const unsigned* count, unsigned turn) {
  if (*count != turn) {
    // Blocks run one after the other.
    emulated::Block::current->fail("waits for the turn of a block that comes later");
  }
}

inline void pass_turn(unsigned* count) {
  auto& units = emulated::Block::thread->units;
  if (!units.stores.empty() || !units.open_stores.empty()) {
    emulated::Block::current->fail("passes its turn before its stores have been written");
  }
  ++*count;
}

}  // namespace strobe::cuda::ptx
