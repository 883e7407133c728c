#include "core/threads.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cores.h"
#include "strobe/machine.h"

namespace strobe {
namespace {

thread_local bool inside_parallel_for = false;

std::atomic<bool> pinning{false};

/// Puts the calling thread on a core of its own by `slot`, or lets it go, as `pinning` says; asks
/// the system only when that has changed.
void follow_pinning(int slot) {
  thread_local bool pinned = false;
  const bool wanted = pinning.load(std::memory_order_relaxed);
  if (wanted == pinned) return;
  cpu_set_t cores = allowed_cores();
  if (wanted) {
    int skip = core_of_slot(slot, core_share(), CPU_COUNT(&cores));
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores) && skip-- != 0) CPU_CLR(core, &cores);
    }
  }
  sched_setaffinity(0, sizeof cores, &cores);
  pinned = wanted;
}

/// What one parallel_for hands to its helpers.
struct Job {
  ItemBody body;
  std::int64_t items;
  int helpers;  // how many pool threads take part
  std::atomic<std::int64_t> next_item{0};
  std::atomic<int> next_thread{1};  // 0 is the caller
  std::exception_ptr error{};
  std::mutex error_mutex{};

  void work(int thread) {
    inside_parallel_for = true;
    try {
      for (std::int64_t item; (item = next_item.fetch_add(1, std::memory_order_relaxed)) < items;) {
        body(item, thread);
      }
    } catch (...) {
      next_item.store(items, std::memory_order_relaxed);
      const std::scoped_lock lock(error_mutex);
      if (!error) error = std::current_exception();
    }
    inside_parallel_for = false;
  }
};

/// Threads that live as long as the process and sleep between jobs. It grows to what is asked.
class Pool {
 public:
  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void run(Job& job) {
    const std::scoped_lock one_job_at_a_time(jobs_);
    {
      const std::scoped_lock lock(mutex_);
      while (static_cast<int>(threads_.size()) < job.helpers)
        threads_.emplace_back(
            [this, slot = static_cast<int>(threads_.size()) + 1] { serve(slot); });
      job_ = &job;
      unclaimed_ = unfinished_ = job.helpers;
    }
    wake_.notify_all();
    follow_pinning(0);
    job.work(0);
    std::unique_lock lock(mutex_);
    unfinished_ -= unclaimed_;  // whoever has not woken by now is not needed
    unclaimed_ = 0;
    done_.wait(lock, [this] { return unfinished_ == 0; });
    job_ = nullptr;
  }

 private:
  void serve(int slot) {
    // A thread starts with the mask of the one that made it, which may be pinned.
    sched_setaffinity(0, sizeof(cpu_set_t), &allowed_cores());
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || unclaimed_ > 0; });
      if (stopping_) return;
      --unclaimed_;
      Job& job = *job_;
      lock.unlock();
      follow_pinning(slot);
      job.work(job.next_thread.fetch_add(1, std::memory_order_relaxed));
      lock.lock();
      if (--unfinished_ == 0) done_.notify_one();
    }
  }

  std::mutex jobs_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  int unclaimed_ = 0;
  int unfinished_ = 0;
  bool stopping_ = false;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

int default_threads() {
  return choose_threads(core_facts()).threads;
}

void pin_threads(bool on) {
  pinning = on;
}

void parallel_for(std::int64_t items, int threads, ItemBody body) {
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads, items)) - 1;
  if (helpers <= 0 || inside_parallel_for) {
    if (!inside_parallel_for) follow_pinning(0);
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  Job job{.body = body, .items = items, .helpers = helpers};
  pool().run(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace strobe
