#include "strobe/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>

#include "core/threads.h"
#include "cpu/isa.h"

namespace strobe {
namespace {

/// The vendor's name where the kernel tells it; on Arm usually only numbers are to be had.
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string implementer;
  for (std::string line; std::getline(info, line);) {
    const auto value = [&line] { return line.substr(std::min(line.find(':') + 2, line.size())); };
    if (line.starts_with("model name")) return value();
    if (line.starts_with("CPU implementer")) implementer = value();
    if (line.starts_with("CPU part")) return "Arm implementer " + implementer + " part " + value();
  }
  return "unknown";
}

}  // namespace

Machine machine() {
  Machine result;
  utsname name{};
  if (uname(&name) == 0) result.architecture = name.machine;
  result.cpu = cpu_name();
  result.cores = default_threads();
  result.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  for (const auto& isa : cpu::isas()) {
    if (isa.runs_here()) result.isas.emplace_back(isa.kernels->name);
  }
  result.isa = cpu::active_isa().name;
  return result;
}

double measure_fma_rate(int threads) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const cpu::IsaKernels& kernels = cpu::active_isa();
  constexpr std::int64_t kIterations = 100'000;  // a millisecond or less
  const int workers = threads > 0 ? threads : default_threads();
  double best = 0;
  for (const auto begin = Clock::now(); seconds_since(begin) < 0.05;) {
    std::atomic<std::int64_t> operations{0};
    const auto start = Clock::now();
    parallel_for(workers, workers, [&](std::int64_t, int) {
      operations += static_cast<std::int64_t>(kernels.multiply_add_loop(kIterations));
    });
    best = std::max(best, static_cast<double>(operations.load()) / seconds_since(start));
  }
  return best;
}

}  // namespace strobe
