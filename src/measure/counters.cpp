#include "measure/counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace strobe::lab {
namespace {

std::uint64_t event_of(Counter counter) {
  switch (counter) {
    case Counter::cycles:
      return PERF_COUNT_HW_CPU_CYCLES;
    case Counter::instructions:
      return PERF_COUNT_HW_INSTRUCTIONS;
    case Counter::cache_references:
      return PERF_COUNT_HW_CACHE_REFERENCES;
    case Counter::cache_misses:
      return PERF_COUNT_HW_CACHE_MISSES;
    case Counter::branch_misses:
      break;
  }
  return PERF_COUNT_HW_BRANCH_MISSES;
}

/// A counter of one thread, as the kernel keeps it.
class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  OpenFile(OpenFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (file_ >= 0) close(file_);
  }

  /// What it has counted so far, and for how much of the time it did.
  struct Reading {
    std::uint64_t value, enabled_ns, running_ns;
  };

  std::optional<Reading> read() const {
    Reading reading{};
    if (::read(file_, &reading, sizeof reading) != static_cast<ssize_t>(sizeof reading))
      return std::nullopt;
    return reading;
  }

 private:
  int file_;
};

/// Between two readings, as if it had counted all the time; nothing if it never did.
std::optional<double> counted(const std::optional<OpenFile::Reading>& before,
                              const std::optional<OpenFile::Reading>& after) {
  if (!before || !after) return std::nullopt;
  const std::uint64_t enabled = after->enabled_ns - before->enabled_ns;
  const std::uint64_t running = after->running_ns - before->running_ns;
  const auto value = static_cast<double>(after->value - before->value);
  if (enabled == 0) return 0.0;  // a thread that slept
  if (running == 0) return std::nullopt;
  return value * static_cast<double>(enabled) / static_cast<double>(running);
}

std::vector<int> threads_of_this_process() {
  std::vector<int> threads;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", none)) {
    const std::string name = entry.path().filename();
    int thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    threads.push_back(thread);
  }
  return threads;
}

std::string refusal(int error) {
  if (error == EACCES || error == EPERM) {
    int level = 0;
    std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
    if (level > 2) {
      return fmt::format(
          "the kernel does not let this user count (kernel.perf_event_paranoid is {}); sudo sysctl "
          "kernel.perf_event_paranoid=2 allows it",
          level);
    }
    return "the kernel does not let this process count; in a container, add the capability PERFMON "
           "and let its seccomp profile allow perf_event_open";
  }
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP) {
    return "the processor shows no counters here, as in most virtual machines; run on the host, or "
           "have the machine be given a virtual PMU";
  }
  if (error == ENOSYS) {
    return "the kernel has no perf_event_open, or the sandbox hides it; run outside of the sandbox";
  }
  return fmt::format("perf_event_open fails: {}; see its manual page", std::strerror(error));
}

/// Of one kind, in every thread.
struct Gauge {
  std::vector<OpenFile> files{};
  std::vector<std::optional<OpenFile::Reading>> before{};
};

/// Returns the error if no thread can be counted in.
int open_gauge(Gauge& gauge, Counter counter, const OpenCounter& open) {
  int error = ESRCH;
  for (const int thread : threads_of_this_process()) {
    const int file = open(counter, thread);
    if (file >= 0)
      gauge.files.emplace_back(file);
    else if (file != -ESRCH)  // a thread that has just ended
      error = -file;
  }
  return gauge.files.empty() ? error : 0;
}

std::optional<double> sum_of(const Gauge& gauge) {
  if (gauge.files.empty()) return std::nullopt;
  double all = 0;
  for (std::size_t i = 0; i < gauge.files.size(); ++i) {
    const auto part = counted(gauge.before[i], gauge.files[i].read());
    if (!part) return std::nullopt;
    all += *part;
  }
  return all;
}

}  // namespace

std::string_view name_of(Counter counter) {
  switch (counter) {
    case Counter::cycles:
      return "cycles";
    case Counter::instructions:
      return "instructions";
    case Counter::cache_references:
      return "cache references";
    case Counter::cache_misses:
      return "cache misses";
    case Counter::branch_misses:
      break;
  }
  return "branch misses";
}

int open_perf_counter(Counter counter, int thread) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_HARDWARE;
  event.config = event_of(counter);
  event.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  event.inherit = 1;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  const long file = syscall(SYS_perf_event_open, &event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  return file >= 0 ? static_cast<int>(file) : -errno;
}

Counts count(const std::function<void()>& work, const OpenCounter& open) {
  Counts counts;
  std::array<Gauge, kCounters.size()> gauges;
  int error = 0;
  bool any = false;
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    const int trouble = open_gauge(gauges[i], kCounters[i], open);
    any = any || trouble == 0;
    if (error == 0) error = trouble;
  }
  if (!any) counts.refused = refusal(error);
  for (Gauge& gauge : gauges) {
    for (const OpenFile& file : gauge.files) gauge.before.push_back(file.read());
  }
  work();
  for (std::size_t i = 0; i < kCounters.size(); ++i) counts.values[i] = sum_of(gauges[i]);
  return counts;
}

}  // namespace strobe::lab
