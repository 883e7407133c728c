#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline void copy_chunk_async(Word to, const void* from, bool valid) {
  if (valid && reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
    emulated::Block::current->fail("a chunk of 16 bytes is copied from between multiples of 16");
  }
  emulated::Block::thread->open.push_back({to, from, valid});
}

inline void commit_copies() {
  emulated::Thread& thread = *emulated::Block::thread;
  thread.groups.push_back(std::exchange(thread.open, {}));
}

template <int kPending>
void wait_for_copies() {
  auto& groups = emulated::Block::thread->groups;
  while (groups.size() > kPending) {
    for (const emulated::Copy& copy : groups.front()) {
      char* const to = emulated::Block::current->shared(copy.to, 16);
      if (copy.valid)
        std::memcpy(to, copy.from, 16);
      else
        std::memset(to, 0, 16);
    }
    groups.erase(groups.begin());
  }
}

inline void wait_for_all_copies() {
  commit_copies();
  wait_for_copies<0>();
}

}  // namespace strobe::cuda::ptx
