#include "strobe/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/cores.h"
#include "core/text.h"
#include "core/threads.h"
#include "cpu/isa.h"
#include "cpu/matrix_units.h"
#include "strobe/error.h"

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

/// Of the largest level: sysconf where it knows, else what the kernel says.
std::int64_t cache_bytes() {
  std::int64_t largest = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  for (int index = 0; largest == 0 && index < 8; ++index) {
    std::ifstream size("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::int64_t kilobytes = 0;
    if (size >> kilobytes) largest = std::max(largest, kilobytes * 1024);
  }
  return largest;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Operations per second of all threads together in `loop`, the best of the tries of 50 ms.
double best_rate(int threads, double (*loop)(std::int64_t iterations)) {
  constexpr std::int64_t kIterations = 100'000;  // a few milliseconds or less
  const int workers = threads > 0 ? threads : default_threads();
  double best = 0;
  for (const auto begin = Clock::now(); seconds_since(begin) < 0.05;) {
    std::atomic<std::int64_t> operations{0};
    const auto start = Clock::now();
    parallel_for(workers, workers, [&](std::int64_t, int) {
      operations += static_cast<std::int64_t>(loop(kIterations));
    });
    best = std::max(best, static_cast<double>(operations.load()) / seconds_since(start));
  }
  return best;
}

/// Whether the kernels in use are of the unit's instruction set (of its own name, if there are
/// such) or a better one, which they are not if STROBE_CPU_ISA holds them back.
bool goes_with_kernels(const cpu::MatrixUnit& unit) {
  const std::string_view active = cpu::active_isa().name;
  bool reached = false;
  for (const cpu::Isa& isa : cpu::isas()) {
    const std::string_view name = isa.kernels->name;
    reached = reached || name == active;
    if (name == unit.name || name == unit.isa) return reached;
  }
  return false;
}

/// The instruction set of the vectors that the kernels in use have, also if they are named after a
/// matrix unit.
std::string_view vector_isa() {
  const std::string_view active = cpu::active_isa().name;
  for (const cpu::MatrixUnit& unit : cpu::matrix_units()) {
    if (unit.name == active) return unit.isa;
  }
  return active;
}

using Loop = double (*)(std::int64_t iterations);

Loop loop_of(const MultiplyAdd& which) {
  const cpu::IsaKernels& kernels = cpu::active_isa();
  if (which.dtype == DType::fp32 && which.name == vector_isa()) return kernels.multiply_add_loop;
  for (const cpu::MatrixUnit& unit : cpu::matrix_units()) {
    if (unit.name == which.name && unit.dtype == which.dtype && goes_with_kernels(unit) &&
        unit.runs_here()) {
      return unit.multiply_add_loop;
    }
  }
  throw InvalidArgument("multiply-add", concat("is '", which.name, "' for ", name_of(which.dtype),
                                               ", which this machine does not have"));
}

}  // namespace

Machine machine() {
  Machine result;
  utsname name{};
  if (uname(&name) == 0) result.architecture = name.machine;
  result.cpu = cpu_name();
  ThreadChoice choice = choose_threads(core_facts());
  result.cores = choice.threads;
  result.cores_reason = std::move(choice.reason);
  result.cache_bytes = cache_bytes();
  result.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  for (const auto& isa : cpu::isas()) {
    if (isa.runs_here()) result.isas.emplace_back(isa.kernels->name);
  }
  result.isa = cpu::active_isa().name;
  return result;
}

std::vector<MultiplyAdd> multiply_adds() {
  std::vector<MultiplyAdd> found{{vector_isa(), DType::fp32}};
  for (const cpu::MatrixUnit& unit : cpu::matrix_units()) {
    if (goes_with_kernels(unit) && unit.runs_here()) found.push_back({unit.name, unit.dtype});
  }
  return found;
}

double measure_multiply_add(const MultiplyAdd& which, int threads) {
  return best_rate(threads, loop_of(which));
}

double measure_fma_rate(DType dtype, int threads) {
  const bool fits_fp32 = dtype == DType::fp16 || dtype == DType::bf16;
  double best = 0;
  for (const MultiplyAdd& each : multiply_adds()) {
    if (each.dtype != dtype && !(fits_fp32 && each.dtype == DType::fp32)) continue;
    best = std::max(best, measure_multiply_add(each, threads));
  }
  return best;
}

double measure_copy_rate(std::int64_t bytes_per_thread, int threads) {
  const int workers = threads > 0 ? threads : default_threads();
  const auto bytes = static_cast<std::size_t>(bytes_per_thread);
  const std::vector<std::byte> source(bytes * static_cast<std::size_t>(workers), std::byte{1});
  std::vector<std::byte> target(source.size());
  // A small copy is repeated, so that handing out the work does not count.
  const std::size_t rounds = 1 + (std::size_t{16} << 20) / (bytes + 1);
  double best = 0;
  for (const auto begin = Clock::now(); seconds_since(begin) < 0.1;) {
    const auto start = Clock::now();
    parallel_for(workers, workers, [&](std::int64_t part, int) {
      const std::size_t first = static_cast<std::size_t>(part) * bytes;
      for (std::size_t round = 0; round < rounds; ++round) {
        std::memcpy(target.data() + first, source.data() + first, bytes);
        __asm__ volatile("" : : "r"(target.data()) : "memory");  // every copy is wanted
      }
    });
    const double moved = 2.0 * static_cast<double>(source.size() * rounds);
    best = std::max(best, moved / seconds_since(start));
  }
  return best;
}

}  // namespace strobe
