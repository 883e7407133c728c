#pragma once

#include "device/basics.cuh"
#include "device/ptx/async_copy.cuh"

namespace strobe::cuda {

/// Tiles that pass through shared memory in a fixed order: while one is used, the next
/// kAhead = slots - 1 are on their way. All threads of the block call the same in the same order:
///
///     kAhead times: start loading into filling(), filled()
///     for every tile: arrived(), start loading into filling(), filled(), use current(), next()
///
/// Where nothing is left to load, filled() is called all the same. A ring of one slot loads nothing
/// ahead; ready() after filled() then waits for the current tile itself.
template <int slots, int slot_bytes>
class TileRing {
 public:
  static_assert(slots >= 1);
  static constexpr int kAhead = slots - 1;
  static constexpr int kBytes = slots * slot_bytes;

  STROBE_DEVICE explicit TileRing(Word memory) : memory_(memory) {}

  STROBE_DEVICE Word filling() const { return memory_ + filling_; }
  STROBE_DEVICE void filled() {
    ptx::commit_copies();
    step(filling_);
  }

  /// Waits for the current tile. When it returns, all threads have left the one before, whose slot
  /// is the next to be filled.
  STROBE_DEVICE void arrived() const {
    if constexpr (kAhead > 0) ptx::wait_for_copies<kAhead - 1>();
    __syncthreads();
  }
  STROBE_DEVICE void ready() const {
    if constexpr (kAhead == 0) {
      ptx::wait_for_copies<0>();
      __syncthreads();
    }
  }
  STROBE_DEVICE Word current() const { return memory_ + current_; }
  STROBE_DEVICE void next() { step(current_); }

 private:
  STROBE_DEVICE static void step(Word& slot) {
    slot = slot == (slots - 1) * slot_bytes ? 0 : slot + slot_bytes;
  }

  Word memory_;
  Word filling_ = 0;
  Word current_ = 0;
};

}  // namespace strobe::cuda
