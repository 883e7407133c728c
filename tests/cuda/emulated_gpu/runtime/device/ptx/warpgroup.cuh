#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

template <int kRegisters>
void give_registers() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
}
template <int kRegisters>
void take_registers() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
}

/// Returns the generation that the thread has come to.
inline long arrive_at(int number, int threads, bool mine) {
  emulated::Block& block = *emulated::Block::current;
  if (number < 1 || number > 15) block.fail("a block has barriers 1 to 15");
  emulated::NamedBarrier& barrier = block.units.named[static_cast<std::size_t>(number)];
  if (barrier.arrived == 0) {
    barrier.threads = threads;
    barrier.any = false;
    barrier.here.assign(static_cast<std::size_t>(block.threads()), false);
  }
  if (threads != barrier.threads || threads % 32 != 0 || threads > block.threads()) {
    block.fail("a barrier is used for different, or impossible, numbers of threads");
  }
  const unsigned self = emulated::Block::thread->number;
  if (barrier.here[self]) block.fail("a thread arrives twice at a barrier");
  barrier.here[self] = true;
  barrier.any = barrier.any || mine;
  const long generation = barrier.generation;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    barrier.result = barrier.any;
    ++barrier.generation;
  }
  block.made_progress();
  return generation;
}

inline bool any_of_threads(int number, int threads, bool mine) {
  const long generation = arrive_at(number, threads, mine);
  const auto& barrier = emulated::Block::current->units.named[static_cast<std::size_t>(number)];
  emulated::Block::current->wait_until([&] { return barrier.generation != generation; });
  return barrier.result;
}

inline void sync_threads(int number, int threads) {
  any_of_threads(number, threads, false);
}

inline void arrive_threads(int number, int threads) {
  arrive_at(number, threads, false);
}

}  // namespace strobe::cuda::ptx
