#include "core/pinning.h"

#include <sched.h>

#include <atomic>
#include <bit>
#include <cstdint>

#include "core/cores.h"
#include "strobe/machine.h"

namespace strobe {
namespace {

std::atomic<bool> pinning{false};
thread_local bool pinned = false;

/// Numbers of the threads that call, a bit each. Nothing to destroy: threads may outlive it.
std::atomic<std::uint64_t> callers{0};

class CallerNumber {
 public:
  CallerNumber() {
    std::uint64_t taken = callers;
    do {
      number_ = std::countr_one(taken);
    } while (number_ < 64 &&
             !callers.compare_exchange_weak(taken, taken | std::uint64_t{1} << number_));
  }
  ~CallerNumber() {
    if (number_ < 64) callers &= ~(std::uint64_t{1} << number_);
  }
  CallerNumber(const CallerNumber&) = delete;
  CallerNumber& operator=(const CallerNumber&) = delete;

  int get() const { return number_; }

 private:
  int number_ = 0;
};

/// Leaves the core at `position` among those in the set.
void keep_one(cpu_set_t& cores, int position) {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores) && position-- != 0) CPU_CLR(core, &cores);
  }
}

}  // namespace

int caller_slot() {
  thread_local const CallerNumber number;
  return -number.get();
}

void follow_pinning(int slot) {
  if (pinning.load(std::memory_order_relaxed) == pinned) return;
  if (pinned) {
    forget_inherited_pinning();
    pinned = false;
    return;
  }
  cpu_set_t cores = allowed_cores();
  keep_one(cores, core_of_slot(slot, core_share(), CPU_COUNT(&cores)));
  sched_setaffinity(0, sizeof cores, &cores);
  pinned = true;
}

void forget_inherited_pinning() {
  sched_setaffinity(0, sizeof(cpu_set_t), &allowed_cores());
}

void pin_threads(bool on) {
  pinning = on;
}

}  // namespace strobe
