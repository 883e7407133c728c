#pragma once
// Slots of shared memory that go back and forth between warps that fill them and warps that use
// what is in them. Both go through the slots in turns and need not know where the others are.

#include "device/ptx/mbarrier.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

/// Which slot it is, and which time around.
template <int slots>
class SlotTurn {
 public:
  SlotTurn() = default;
  STROBE_DEVICE explicit SlotTurn(Word number) : count_(number) {}

  STROBE_DEVICE int slot() const { return static_cast<int>(count_ % slots); }
  STROBE_DEVICE int slot_before() const { return static_cast<int>((count_ + slots - 1) % slots); }
  STROBE_DEVICE Word parity() const { return count_ / slots % 2; }
  STROBE_DEVICE bool is_first() const { return count_ == 0; }
  STROBE_DEVICE Word number() const { return count_; }
  STROBE_DEVICE SlotTurn after() const {
    SlotTurn turn = *this;
    turn.next();
    return turn;
  }
  STROBE_DEVICE SlotTurn before() const {
    SlotTurn turn = *this;
    --turn.count_;
    return turn;
  }
  STROBE_DEVICE void next() { ++count_; }

 private:
  Word count_ = 0;  // for both, as there are few registers
};

/// In shared memory.
template <int slots>
struct SlotBarriers {
  unsigned long long full[slots];
  unsigned long long empty[slots];

  /// By one thread. A slot is full when all fillers have arrived and the bytes they announced have,
  /// and empty when all users have released it.
  STROBE_DEVICE void init(int users, int fillers = 1) {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
      ptx::init_barrier(ptx::shared_address(&full[slot]), fillers);
      ptx::init_barrier(ptx::shared_address(&empty[slot]), users);
    }
  }

  // For those who fill or use several kinds of slots in step; others have a SlotFiller or SlotUser.

  /// Waits until a slot is empty, to fill it.
  STROBE_DEVICE void begin(const SlotTurn<slots>& turn) const {
    ptx::wait_for_phase(ptx::shared_address(&empty[turn.slot()]), turn.parity() ^ 1);
  }
  STROBE_DEVICE void end(int slot) const {
    ptx::arrive(ptx::shared_address(&full[slot]));
  }
  /// Waits until it is full, to use it.
  STROBE_DEVICE void wait(const SlotTurn<slots>& turn) const {
    ptx::wait_for_phase(ptx::shared_address(&full[turn.slot()]), turn.parity());
  }
  STROBE_DEVICE void release(int slot) const {
    ptx::arrive(ptx::shared_address(&empty[slot]));
  }
};

/// A thread of those that fill.
template <int slots>
class SlotFiller {
 public:
  STROBE_DEVICE explicit SlotFiller(SlotBarriers<slots>& barriers)
      : barriers_(ptx::shared_address(&barriers)) {}

  /// The slot to fill; waits until it is empty, which all are at first.
  STROBE_DEVICE int begin() const {
    ptx::wait_for_phase(barriers_ + (slots + turn_.slot()) * 8, turn_.parity() ^ 1);
    return turn_.slot();
  }
  STROBE_DEVICE int slot() const { return turn_.slot(); }
  /// What copies to the slot count on.
  STROBE_DEVICE Word barrier() const { return barriers_ + turn_.slot() * 8; }
  STROBE_DEVICE void end() { turn_.next(); }

 private:
  Word barriers_;
  SlotTurn<slots> turn_{};
};

/// A thread of a warp that uses.
template <int slots>
class SlotUser {
 public:
  STROBE_DEVICE explicit SlotUser(SlotBarriers<slots>& barriers)
      : barriers_(ptx::shared_address(&barriers)) {}

  STROBE_DEVICE int slot() const { return turn_.slot(); }
  STROBE_DEVICE int slot_before() const { return turn_.slot_before(); }
  STROBE_DEVICE Word number() const { return turn_.number(); }
  STROBE_DEVICE void wait() const {
    ptx::wait_for_phase(barriers_ + turn_.slot() * 8, turn_.parity());
  }
  STROBE_DEVICE void next() { turn_.next(); }

  /// By one thread of those that the barriers were made for.
  STROBE_DEVICE void release(int slot) const { ptx::arrive(barriers_ + (slots + slot) * 8); }

 private:
  Word barriers_;
  SlotTurn<slots> turn_{};
};

}  // namespace strobe::cuda
