#include "experiment/traffic.h"

#include <algorithm>
#include <charconv>

#include "measure/device_metrics.h"
#include "measure/flops.h"
#include "measure/recorded_calls.h"

namespace strobe::lab {
namespace {

constexpr double kCacheLine = 64;
constexpr std::int64_t kFewestCountedBytes = 1'000'000;

double element_bytes(const Problem& problem) {
  return static_cast<double>(size_of(problem.dtype));
}

double query_bytes(const Problem& problem, std::int64_t dim) {
  return static_cast<double>(problem.total_q() * problem.heads * dim) * element_bytes(problem);
}

double key_bytes(const Problem& problem, std::int64_t dim) {
  return static_cast<double>(problem.total_k() * problem.kv_heads() * dim) * element_bytes(problem);
}

/// Log-sum-exp, a float for each row.
double lse_bytes(const Problem& problem) {
  return static_cast<double>(problem.total_q() * problem.heads) * sizeof(float);
}

/// Of all pairs of a query and a key, those that the mask lets see each other.
double visible_part(const Problem& problem) {
  double all = 0;
  for (std::int64_t i = 0; i < problem.batch; ++i)
    all += static_cast<double>(problem.length_q(i)) * static_cast<double>(problem.length_k(i));
  return all > 0 ? visible_pairs(problem) / all : 0;
}

/// A number, or the first of "128x160".
std::int64_t leading_number(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

MeasuredTraffic traffic_of(const DeviceCounts& counts) {
  const auto read = total(counts, metric::kDramRead), written = total(counts, metric::kDramWritten);
  if (read && written)
    return {.bytes = *read + *written, .by = "bytes to and from the GPU's DRAM, with cold caches"};
  return {.by = counts.refused.empty() ? "this GPU does not count the bytes of its DRAM"
                                       : counts.refused};
}

}  // namespace

std::vector<PhaseTraffic> unfused_traffic(const Problem& problem) {
  const double scores =
      visible_pairs(problem) * static_cast<double>(problem.heads) * element_bytes(problem);
  const double queries = query_bytes(problem, problem.dim), keys = key_bytes(problem, problem.dim);
  return {{"scores", {.read = queries + keys, .written = scores}},
          {"softmax", {.read = scores, .written = scores + lse_bytes(problem)}},
          {"sum of values",
           {.read = scores + key_bytes(problem, problem.value_dim()),
            .written = query_bytes(problem, problem.value_dim())}}};
}

Traffic total_of(const std::vector<PhaseTraffic>& phases) {
  Traffic all;
  for (const PhaseTraffic& phase : phases) {
    all.read += phase.bytes.read;
    all.written += phase.bytes.written;
  }
  return all;
}

Traffic flash_traffic(const Problem& problem, std::int64_t query_rows) {
  const std::int64_t rows = problem.seqlen_q * problem.group();
  const auto blocks = static_cast<double>((rows + query_rows - 1) / query_rows);
  const double passes = std::max(1.0, blocks * visible_part(problem));
  const double keys_and_values =
      key_bytes(problem, problem.dim) + key_bytes(problem, problem.value_dim());
  return {.read = query_bytes(problem, problem.dim) + passes * keys_and_values,
          .written = query_bytes(problem, problem.value_dim()) + lse_bytes(problem)};
}

std::int64_t query_rows_of(const TuningRecord& tuning) {
  for (const auto& [key, value] : tuning) {
    if (key == "query_rows" || key == "tile") return leading_number(value);
  }
  return 0;
}

MeasuredTraffic measure_traffic(const Implementation& implementation, const Problem& problem,
                                const PlanOptions& options) {
  if (implementation.device() != Device::Kind::cpu)
    return traffic_of(count_on_device(implementation, problem, options));
  const Footprint operands = footprint(problem);
  if (operands.inputs + operands.outputs < kFewestCountedBytes)
    return {.by = "operands of less than a megabyte, beside which code and stack miss as often"};
  const CountedCalls counted = count_calls(implementation, problem, options, {.calls = 3});
  const auto misses = counted.counts[Counter::cache_misses];
  if (misses)
    return {.bytes = *misses * kCacheLine / counted.calls, .by = "cache misses, 64 bytes each"};
  return {.by = counted.counts.refused.empty() ? "this CPU does not count its cache misses"
                                               : counted.counts.refused};
}

}  // namespace strobe::lab
