#include "measure/peaks.h"

#include <algorithm>

#include "strobe/machine.h"

namespace strobe::lab {
namespace {

constexpr int kTries = 2;

template <class Measure>
double best_of(const Measure& measure) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) best = std::max(best, measure());
  return best;
}

/// From what a first-level cache holds to four times the last-level one, within reason.
std::vector<std::int64_t> working_sets(int threads) {
  const std::int64_t beyond_cache =
      std::clamp<std::int64_t>(2 * machine().cache_bytes, 64 << 20, 512 << 20) / threads;
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 16 << 10; 2 * bytes < beyond_cache; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(beyond_cache);
  return sizes;
}

}  // namespace

double Peaks::bytes_per_second_within(std::int64_t bytes) const {
  // A copy has a source and a target, so it works on twice what it moves.
  const auto holds = [&](const CopyRate& rate) {
    return 2 * rate.bytes_per_thread * threads >= bytes;
  };
  const auto found = std::find_if(copy.begin(), copy.end(), holds);
  return found == copy.end() ? memory_bytes_per_second() : found->bytes_per_second;
}

void Peaks::add(const MultiplyRate& rate) {
  if (!rate.tf32) instructions.push_back({rate.name, rate.dtype, rate.per_second});
  double& best = rate.tf32 ? tf32_flops_per_second : flops_per_second[rate.dtype];
  best = std::max(best, rate.per_second);
}

void Peaks::raise_to(const Peaks& other) {
  tf32_flops_per_second = std::max(tf32_flops_per_second, other.tf32_flops_per_second);
  for (const auto& [dtype, rate] : other.flops_per_second) {
    flops_per_second[dtype] = std::max(flops_per_second[dtype], rate);
  }
  for (InstructionRate& rate : instructions) {
    for (const InstructionRate& known : other.instructions) {
      if (known.name == rate.name && known.dtype == rate.dtype)
        rate.per_second = std::max(rate.per_second, known.per_second);
    }
  }
  if (copy.size() != other.copy.size()) return;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    copy[i].bytes_per_second = std::max(copy[i].bytes_per_second, other.copy[i].bytes_per_second);
  }
}

Peaks measure_peaks(int threads) {
  Peaks peaks{.threads = threads > 0 ? threads : machine().cores};
  for (const MultiplyAdd& each : multiply_adds()) {
    const double rate = best_of([&] { return measure_multiply_add(each, peaks.threads); });
    peaks.instructions.push_back({std::string(each.name), each.dtype, rate});
    double& best = peaks.flops_per_second[each.dtype];
    best = std::max(best, rate);
  }
  for (const DType dtype : {DType::fp16, DType::bf16}) {  // can always be multiplied as fp32
    double& best = peaks.flops_per_second[dtype];
    best = std::max(best, peaks.flops_per_second[DType::fp32]);
  }
  for (const std::int64_t bytes : working_sets(peaks.threads)) {
    peaks.copy.push_back({bytes, best_of([&] { return measure_copy_rate(bytes, peaks.threads); })});
  }
  return peaks;
}

}  // namespace strobe::lab
