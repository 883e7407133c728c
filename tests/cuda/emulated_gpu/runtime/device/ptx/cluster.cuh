#pragma once

#include "device/ptx/mbarrier.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda::ptx {

inline void sync_cluster() {
  emulated::Block::current->cluster().synchronize();
}

inline emulated::MemoryBarrier& barrier_in_block(Word address, emulated::Block& block) {
  const auto found = block.units.barriers.find(address);
  if (found == block.units.barriers.end() || !found->second.shown)
    emulated::Block::current->fail("a barrier of another block is used that it has not shown");
  return found->second;
}

inline void arrive_in_block(Word barrier, int block) {
  arrive_with(barrier_in_block(barrier, emulated::Block::current->cluster().reach(block)), 0);
}

inline void copy_to_block(Word to, int block, Word from, int bytes, Word barrier) {
  if (to % 16 != 0 || from % 16 != 0 || bytes % 16 != 0)
    emulated::Block::current->fail("what is copied lies between multiples of 16 bytes");
  emulated::Block& here = *emulated::Block::current;
  emulated::Block& there = here.cluster().reach(block);
  barrier_in_block(barrier, there);
  const auto perform = [=, &here, &there] {
    for (Word at = 0; at < static_cast<Word>(bytes); at += 16) {
      if (here.units.unseen[(from + at) / 16] > 0)
        emulated::Block::current->fail("what is copied was written and not shown to the unit");
      std::memcpy(there.shared(to + at, 16), here.shared(from + at, 16), 16);
    }
    emulated::MemoryBarrier& received = barrier_in_block(barrier, there);
    received.bytes -= bytes;
    end_phase_if_complete(received);
    emulated::Block::current->made_progress();
  };
  if (here.random() % 2 == 0)
    perform();
  else
    there.units.loads.push_back({barrier, perform});
  here.made_progress();
}

}  // namespace strobe::cuda::ptx
