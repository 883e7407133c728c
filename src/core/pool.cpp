#include "core/pool.h"

#include <chrono>
#include <exception>
#include <utility>

#include "core/pinning.h"
#include "core/recorder.h"
#include "core/text.h"

// The orders of memory are the default ones throughout: that a sleeper sees a seat, or is seen by
// who offers it, rests on one order of all of them, and nothing here is done often enough for a
// weaker one to show.

namespace strobe {
namespace {

thread_local bool working = false;

/// About as long as a sleeping thread takes to wake: waiting for it costs at most twice what the
/// better of spinning and sleeping would have cost.
constexpr std::chrono::microseconds kSpin{50};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");  // waits a little; "yield" does nothing on most cores
#else
  std::this_thread::yield();
#endif
}

/// Whether `reached` became true before kSpin had passed.
template <class Condition>
bool spin_until(const Condition& reached) {
  constexpr int kLooksAtAClock = 16;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksAtAClock; ++i) {
      if (reached()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return reached();
}

}  // namespace

bool inside_a_job() {
  return working;
}

void tell_share(Span& span, int thread, std::int64_t items) {
  span.tell("thread", std::int64_t{thread});
  span.tell("items", items);
}

Job::Job(std::string_view name, ItemBody body, std::int64_t items, int helpers, bool spin)
    : name_(name), body_(body), helpers_(helpers), spin_(spin) {
  const Shares dealt(items, helpers + 1);
  share_count_ = static_cast<std::size_t>(dealt.count());
  for (int i = 0; Share & share : shares()) {
    share.next = dealt.begin(i);
    share.end = dealt.begin(++i);
  }
}

void Job::work(int thread, int home) noexcept {
  const bool outer = std::exchange(working, true);
  Span span("cpu", name_);
  std::int64_t taken = 0;
  try {
    for (std::size_t i = 0; i < share_count_; ++i)
      taken += work_on(shares_[(static_cast<std::size_t>(home) + i) % share_count_], thread);
  } catch (...) {
    give_up(std::current_exception());
  }
  tell_share(span, thread, taken);
  working = outer;
}

/// Looks before it takes: asking in vain would fetch the share from whoever works on it.
std::int64_t Job::work_on(Share& share, int thread) {
  std::int64_t taken = 0;
  while (share.next.load(std::memory_order_relaxed) < share.end) {
    const std::int64_t item = share.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= share.end) break;
    body_(item, thread);
    ++taken;
  }
  return taken;
}

/// Nobody takes another item.
void Job::give_up(std::exception_ptr error) {
  for (Share& share : shares()) share.next.store(share.end, std::memory_order_relaxed);
  const std::scoped_lock lock(error_mutex_);
  if (!error_) error_ = std::move(error);
}

/// Its own share is that of its place, if there are so many, as long as the pool is no larger.
void Job::help(int slot) noexcept {
  const int thread = next_thread_.fetch_add(1);
  work(thread, slot <= helpers_ ? slot : thread);
}

Pool::~Pool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Pool::run(Job& job) {
  Desk* const desk = take_desk();
  if (desk == nullptr) return job.work(0, 0);  // more callers than desks: no thread will be free
  grow_to(job.helpers());
  desk->job = &job;
  desk->unfinished = job.helpers();
  desk->seats = job.helpers();
  wake_for_open_seats();
  job.work(0, 0);
  // Whoever has not come by now is not needed.
  const int empty = desk->seats.exchange(0);
  if (desk->unfinished.fetch_sub(empty) != empty) wait_for_helpers(*desk, job.spin());
  desk->taken = false;
}

Pool::Desk* Pool::take_desk() {
  for (Desk& desk : desks_) {
    if (!desk.taken && !desk.taken.exchange(true)) return &desk;
  }
  return nullptr;
}

void Pool::grow_to(int threads) {
  if (size_ >= threads) return;
  const std::scoped_lock lock(mutex_);
  try {
    while (size_ < threads) {
      threads_.emplace_back([this, slot = size_ + 1] { serve(slot); });
      ++size_;
    }
  } catch (const std::exception&) {  // no more threads, or no memory for them: fewer will do
  }
}

/// Wakes as many as there are seats that nobody awake will take.
void Pool::wake_for_open_seats() {
  const int wanted = open_seats() - lookouts_;
  if (wanted <= 0 || sleepers_ == 0) return;
  const std::scoped_lock lock(mutex_);  // whoever is about to sleep, sleeps by now or saw the seats
  if (sleepers_ <= wanted) return wake_.notify_all();
  for (int i = 0; i < wanted; ++i) wake_.notify_one();
}

void Pool::wait_for_helpers(Desk& desk, bool spin) {
  const auto all_done = [&desk] { return desk.unfinished == 0; };
  if (spin && spin_until(all_done)) return;
  std::unique_lock lock(mutex_);
  desk.caller_sleeps = true;
  desk.done.wait(lock, all_done);
  desk.caller_sleeps = false;
}

Pool::Desk* Pool::take_seat() {
  for (Desk& desk : desks_) {
    for (int seats = desk.seats; seats > 0;) {
      if (desk.seats.compare_exchange_weak(seats, seats - 1)) return &desk;
    }
  }
  return nullptr;
}

int Pool::open_seats() const {
  int seats = 0;
  for (const Desk& desk : desks_) seats += desk.seats;
  return seats;
}

/// Works on the job of the desk; returns whether it is worth looking out for another.
bool Pool::help(Desk& desk, int slot) {
  Job& job = *desk.job;
  const bool spin = job.spin();
  follow_pinning(slot);
  job.help(slot);
  if (desk.unfinished.fetch_sub(1) == 1 && desk.caller_sleeps) {  // the job may be gone now
    const std::scoped_lock lock(mutex_);
    desk.done.notify_one();
  }
  return spin;
}

bool Pool::look_out() {
  ++lookouts_;
  const bool found = spin_until([this] { return open_seats() > 0; });
  --lookouts_;
  return found;
}

/// Until there is a seat; false when the pool is to end.
bool Pool::sleep() {
  std::unique_lock lock(mutex_);
  ++sleepers_;
  wake_.wait(lock, [this] { return stopping_ || open_seats() > 0; });
  --sleepers_;
  return !stopping_;
}

void Pool::serve(int slot) {
  forget_inherited_pinning();
  name_this_thread(concat("worker ", slot));
  for (bool looking_out = false;;) {
    looking_out = looking_out && look_out();
    if (!looking_out && !sleep()) return;
    Desk* const desk = take_seat();
    if (desk == nullptr) continue;
    if (looking_out) wake_for_open_seats();  // two callers may both have counted on this thread
    looking_out = help(*desk, slot);
  }
}

}  // namespace strobe
