#include "core/threads.h"

#include <algorithm>

#include "core/cores.h"
#include "core/pinning.h"
#include "core/pool.h"

namespace strobe {
namespace {

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

int default_threads() {
  return choose_threads(core_facts()).threads;
}

void parallel_for(std::int64_t items, int threads, ItemBody body) {
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads, items)) - 1;
  if (!inside_a_job()) follow_pinning(caller_slot());
  if (helpers <= 0 || inside_a_job()) {
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  Job job{.body = body, .items = items, .helpers = helpers, .spin = threads <= core_share().cores};
  pool().run(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace strobe
