#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "core/threads.h"
#include "strobe/trace.h"

namespace strobe {

/// What one parallel_for hands out: see there.
class Job {
 public:
  /// At most `helpers` threads take part beside the caller. `name` is that of the spans that it
  /// leaves, one for each thread; `spin` says whether waiting may burn a core, since there is one
  /// for every thread.
  Job(std::string_view name, ItemBody body, std::int64_t items, int helpers, bool spin);

  /// Takes items until there are none left, those of the share `home` first. `thread` is this
  /// thread's number for the body. What the body throws is kept.
  void work(int thread, int home) noexcept;

  /// A thread that comes to help, by its place in the pool, from 1 on.
  void help(int slot) noexcept;

  int helpers() const { return helpers_; }
  bool spin() const { return spin_; }

  /// Throws what a body threw first. When all threads are done.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct alignas(64) Share {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };

  std::int64_t work_on(Share& share, int thread);
  void give_up(std::exception_ptr error);

  std::span<Share> shares() { return std::span(shares_).first(share_count_); }

  std::string_view name_;
  ItemBody body_;
  int helpers_;
  bool spin_;
  std::size_t share_count_;
  std::atomic<int> next_thread_{1};  ///< 0 is the caller
  std::exception_ptr error_{};
  std::mutex error_mutex_{};
  std::array<Share, Shares::kMost> shares_;
};

/// What the span of a thread's part in a job says of it.
void tell_share(Span& span, int thread, std::int64_t items);

/// Whether this thread is in the body of a parallel_for.
bool inside_a_job();

/// Threads that live as long as the process. Between jobs they look out for the next one for some
/// tens of microseconds, which makes a run of short jobs cheap, and then sleep. There are as many
/// as the widest job has asked for.
///
/// Several callers are served at once: each works on its own job from the start, and threads that
/// are free join the job that is open. A caller that had to wait its turn could do nothing
/// meanwhile, and one that worked alone would not profit from threads that become free.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Works on the job until it is done, with at most job.helpers() threads of the pool.
  void run(Job& job);

 private:
  /// Where a caller lays out a job. A helper takes a seat by lowering `seats`, and from then on
  /// the job stays until the helper has lowered `unfinished`.
  struct alignas(64) Desk {
    std::atomic<bool> taken{false};
    std::atomic<int> seats{0};
    std::atomic<int> unfinished{0};
    std::atomic<Job*> job{nullptr};
    std::atomic<bool> caller_sleeps{false};
    std::condition_variable done{};
  };

  Desk* take_desk();
  void grow_to(int threads);
  void wake_for_open_seats();
  void wait_for_helpers(Desk& desk, bool spin);
  Desk* take_seat();
  int open_seats() const;
  bool help(Desk& desk, int slot);
  bool look_out();
  bool sleep();
  void serve(int slot);

  std::array<Desk, 8> desks_{};
  std::atomic<int> size_{0};
  std::atomic<int> lookouts_{0};  ///< threads that spin
  std::atomic<int> sleepers_{0};
  std::mutex mutex_{};  ///< of what follows, and of going to sleep
  std::condition_variable wake_{};
  std::vector<std::thread> threads_{};
  bool stopping_ = false;
};

}  // namespace strobe
