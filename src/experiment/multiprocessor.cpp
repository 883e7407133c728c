#include "experiment/multiprocessor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr std::int64_t kKilobyte = 1024;

struct KnownMultiprocessor {
  int capability;
  Multiprocessor limits;
};

// From NVIDIA's table of technical specifications per compute capability.
constexpr KnownMultiprocessor kMultiprocessors[] = {
    {80, {.threads = 2048, .blocks = 32, .shared_bytes = 164 * kKilobyte}},
    {86, {.threads = 1536, .blocks = 16, .shared_bytes = 100 * kKilobyte}},
    {87, {.threads = 1536, .blocks = 16, .shared_bytes = 164 * kKilobyte}},
    {89, {.threads = 1536, .blocks = 24, .shared_bytes = 100 * kKilobyte}},
    {90, {.threads = 2048, .blocks = 32, .shared_bytes = 228 * kKilobyte}},
    {100, {.threads = 2048, .blocks = 32, .shared_bytes = 228 * kKilobyte}},
    {103, {.threads = 2048, .blocks = 32, .shared_bytes = 228 * kKilobyte}},
    {120, {.threads = 1536, .blocks = 24, .shared_bytes = 100 * kKilobyte}}};

int capability_of(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix)) {
    const std::string_view digits = architecture.substr(kPrefix.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return number;
}

constexpr int round_up_to(int value, int step) {
  return (value + step - 1) / step * step;
}

/// Registers are handed to warps, 256 at a time.
int registers_of_block(const CompiledKernel& kernel) {
  constexpr int kWarp = 32, kStep = 256;
  const int warps = round_up_to(kernel.threads, kWarp) / kWarp;
  return warps * round_up_to(kernel.registers * kWarp, kStep);
}

}  // namespace

Multiprocessor multiprocessor_of(std::string_view architecture) {
  const int capability = capability_of(architecture);
  std::string known;
  for (const KnownMultiprocessor& each : kMultiprocessors) {
    if (each.capability == capability) return each.limits;
    known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", each.capability);
  }
  throw InvalidArgument("--arch", fmt::format("is '{}', whose multiprocessors are not known here; "
                                              "known are {}",
                                              architecture, known));
}

Residency residency_of(const CompiledKernel& kernel, const Multiprocessor& multiprocessor) {
  constexpr std::int64_t kReserved = kKilobyte;  // of shared memory, for each block
  const auto fitting = [](std::int64_t all, std::int64_t each) {
    return each > 0 ? static_cast<int>(all / each) : std::numeric_limits<int>::max();
  };
  const std::pair<int, const char*> limits[] = {
      {fitting(multiprocessor.registers, registers_of_block(kernel)), "registers"},
      {fitting(multiprocessor.shared_bytes, kernel.shared_bytes + kReserved), "shared memory"},
      {fitting(multiprocessor.threads, kernel.threads), "threads"},
      {multiprocessor.blocks, "blocks"}};
  const auto [blocks, limit] =
      *std::min_element(std::begin(limits), std::end(limits),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return {.blocks = blocks,
          .occupancy = static_cast<double>(blocks * kernel.threads) /
                       static_cast<double>(multiprocessor.threads),
          .limit = limit};
}

}  // namespace strobe::lab
