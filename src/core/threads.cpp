#include "core/threads.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/cores.h"
#include "core/pinning.h"
#include "core/pool.h"
#include "strobe/error.h"
#include "strobe/threads.h"
#include "strobe/trace.h"

namespace strobe {
namespace {

Pool& pool() {
  static Pool instance;
  return instance;
}

/// The host's executor, if there is one.
class Host {
 public:
  void set(const Executor& executor) {
    const std::scoped_lock lock(mutex_);
    executor_ = executor;
    present_ = executor.run != nullptr;
  }

  Executor get() {
    if (!present_) return {};
    const std::scoped_lock lock(mutex_);
    return executor_;
  }

 private:
  std::atomic<bool> present_{false};
  std::mutex mutex_{};
  Executor executor_{};
};

Host host;

/// A task of the host is what a thread of the pool would be.
void run_on(const Executor& executor, Job& job) {
  struct Tasks {
    Job& job;
    std::atomic<std::int64_t> done{0};
  } tasks{job};
  const std::int64_t count = job.helpers() + 1;
  executor.run(
      executor.context, count,
      [](void* argument, std::int64_t task) {
        auto& all = *static_cast<Tasks*>(argument);
        all.job.work(static_cast<int>(task), static_cast<int>(task));
        ++all.done;
      },
      &tasks);
  if (tasks.done != count) throw Error("the executor returned before all of its tasks had run");
}

}  // namespace

int default_threads() {
  return choose_threads(core_facts()).threads;
}

void set_executor(const Executor& executor) {
  host.set(executor);
}

void parallel_for(std::string_view name, std::int64_t items, int threads, ItemBody body) {
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads, items)) - 1;
  const bool nested = inside_a_job();
  const Executor executor = nested ? Executor{} : host.get();
  if (executor.run != nullptr) {
    let_go();
  } else if (!nested) {
    follow_pinning(caller_slot());
  }
  if (helpers <= 0 || nested) {
    Span span("cpu", name);
    tell_share(span, 0, items);
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  Job job(name, body, items, helpers, threads <= core_share().cores);
  if (executor.run != nullptr) {
    run_on(executor, job);
  } else {
    pool().run(job);
  }
  job.rethrow();
}

}  // namespace strobe
