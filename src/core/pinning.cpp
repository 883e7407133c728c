#include "core/pinning.h"

#include <sched.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/cores.h"
#include "core/text.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe {
namespace {

enum class Wish : std::uint8_t { none, off, on };

std::atomic<Wish> wish{Wish::none};  // by pin_threads
thread_local bool pinned = false;

bool wanted_by_environment() {
  static const bool wanted = parse_pin(std::getenv("STROBE_PIN"));
  return wanted;
}

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

bool parse_pin(const char* value) {
  const std::string_view text = value == nullptr ? "" : value;
  if (text == "1") return true;
  if (text.empty() || text == "0") return false;
  throw InvalidArgument("STROBE_PIN", concat("is '", text, "', allowed is 0 or 1"));
}

void check_pinning() {
  wanted_by_environment();
}

int caller_slot() {
  thread_local const CallerNumber number;
  return -number.get();
}

void follow_pinning(int slot) {
  if (threads_pinned() == pinned) return;
  if (pinned) return let_go();
  if (!allowed_cores()) return;
  cpu_set_t cores = *allowed_cores();
  keep_one(cores, core_of_slot(slot, core_share(), CPU_COUNT(&cores)));
  sched_setaffinity(0, sizeof cores, &cores);
  pinned = true;
}

void let_go() {
  if (!pinned) return;
  forget_inherited_pinning();
  pinned = false;
}

void forget_inherited_pinning() {
  const auto& cores = allowed_cores();
  if (cores) sched_setaffinity(0, sizeof *cores, &*cores);
}

void pin_threads(bool on) {
  wish = on ? Wish::on : Wish::off;
}

bool threads_pinned() {
  const Wish asked = wish.load(std::memory_order_relaxed);
  return asked == Wish::none ? wanted_by_environment() : asked == Wish::on;
}

}  // namespace strobe
