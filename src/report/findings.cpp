#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/device_metrics.h"
#include "report/kernel_summary.h"

// The targets are the usual ones of attention on GPUs: 150 TFLOP/s of an A100's 312 are good and
// less than 100 are not, units should be busy for 90 % of the time and not less than 70, memory
// should give 80 % of its bandwidth, and unfused attention should be three times slower, at least
// twice. As parts of the peak they hold for any machine.
namespace strobe::lab {
namespace {

/// From `good` on it is good, below `poor` poor.
struct Thresholds {
  double good, poor;

  Grade grade(double value) const {
    return value >= good ? Grade::good : value < poor ? Grade::poor : Grade::fair;
  }
};

constexpr Thresholds kRateTargets{0.48, 0.32};
constexpr Thresholds kBandwidthTargets{0.80, 0.80};
constexpr Thresholds kBusyTargets{0.90, 0.70};
constexpr Thresholds kSpeedupTargets{3, 2};
constexpr double kSteadyWithin = 0.02;
constexpr double kShortCallMs = 0.1;
constexpr double kFasterDtype = 1.5;
constexpr double kInstructionsPerCycle = 1;
constexpr double kTrafficOnce = 1.5;

std::string percent_text(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

std::string thresholds_text(const char* what, const Thresholds& t) {
  if (t.good == t.poor) return fmt::format("{} {} or more is good", what, percent_text(t.good));
  return fmt::format("{} {} or more is good, below {} is poor", what, percent_text(t.good),
                     percent_text(t.poor));
}

class Findings {
 public:
  explicit Findings(const PassProfile& pass) : pass_(pass) {}

  void add(const char* subject, Grade grade, std::string figure, std::string rule,
           const std::string& advice) {
    all_.push_back({fmt::format("{}: {}", pass_.name(), subject), grade, std::move(figure),
                    std::move(rule), grade == Grade::good ? "" : advice});
  }

  void judge_rate();
  void judge_busy(int threads);
  void judge_speedup();
  void judge_dtype(const Peaks& peaks);
  void judge_steadiness();
  void judge_size();
  void judge_clocks();
  void judge_instructions();
  void judge_multiprocessors();
  void judge_dram();
  void judge_tensor_cores();
  void judge_spills();

  std::vector<Finding> take() { return std::move(all_); }

 private:
  const PassProfile& pass_;
  std::vector<Finding> all_{};
};

/// Against the roof that the problem is under.
void Findings::judge_rate() {
  const Roofline& roof = pass_.roof;
  if (roof.flops_per_second() <= 0) {
    add("rate", Grade::fair, "there is no peak to hold it against",
        "a rate is judged by its part of the measured peak",
        "strobe info --measure takes the peaks");
    return;
  }
  if (roof.memory_bound()) {
    const double part = pass_.bytes_per_second() / roof.bytes_per_second;
    add("bandwidth", kBandwidthTargets.grade(part),
        fmt::format("memory-bound, {} of the measured copy rate", percent_text(part)),
        thresholds_text("of the copy rate", kBandwidthTargets),
        "let more queries share each key and value: a larger --seqlen, or fewer --kv-heads");
    return;
  }
  const double part = pass_.flops_per_second() / roof.peak_flops;
  const char* const advice =
      pass_.on_cpu()
          ? "see in compute_metrics.txt which threads waited, and that strobe info names "
            "the best kernels of this CPU"
          : "strobe tune looks for a faster way to cut this problem";
  add("rate", kRateTargets.grade(part),
      fmt::format("compute-bound, {} of the measured peak", percent_text(part)),
      thresholds_text("of the peak", kRateTargets), advice);
}

void Findings::judge_busy(int threads) {
  if (!pass_.on_cpu()) return;
  const double part = busy_part(pass_.calls.host, threads);
  if (part <= 0) return;
  add("threads", kBusyTargets.grade(part),
      fmt::format("{} threads busy {} of a call", threads, percent_text(part)),
      thresholds_text("busy for", kBusyTargets),
      "give each thread more items, by a larger batch or more heads, or take fewer --threads; what "
      "else runs here may hold the cores too");
}

void Findings::judge_speedup() {
  if (!pass_.speedup) return;
  add("speed-up", kSpeedupTargets.grade(*pass_.speedup),
      fmt::format("{:.2f} times as fast as the unfused computation", *pass_.speedup),
      fmt::format("{:g} times or more is good, below {:g} is poor", kSpeedupTargets.good,
                  kSpeedupTargets.poor),
      "fusing pays with the length: look at a larger --seqlen");
}

void Findings::judge_dtype(const Peaks& peaks) {
  const DType dtype = pass_.result.problem.dtype;
  const auto rate = [&](DType which) {
    const auto known = peaks.flops_per_second.find(which);
    return known == peaks.flops_per_second.end() ? 0 : known->second;
  };
  if (dtype != DType::fp32 || pass_.result.options.tf32 || rate(DType::fp32) <= 0) return;
  const double gain = rate(DType::bf16) / rate(DType::fp32);
  if (gain < kFasterDtype) return;
  add("dtype", Grade::fair,
      fmt::format("fp32, while bf16 is multiplied {:.1f} times as fast here", gain),
      fmt::format("fp32 is fair where 16 bits are {:g} times as fast", kFasterDtype),
      "--dtype bf16 or fp16, if their precision is enough");
}

void Findings::judge_steadiness() {
  const Statistics& ms = pass_.result.measurement.ms;
  const double uncertainty = ms.relative_uncertainty();
  if (ms.ci95 && uncertainty <= kSteadyWithin) return;
  add("steadiness", Grade::fair,
      ms.ci95 ? fmt::format("the median is known within {:.1f} %", 100 * uncertainty)
              : "too few samples to know the median well",
      fmt::format("within {} is steady", percent_text(kSteadyWithin)),
      "end other work on this machine, or sample longer with --budget");
}

void Findings::judge_size() {
  if (pass_.ms() >= kShortCallMs) return;
  add("size", Grade::fair, fmt::format("a call takes {:.1f} us", 1e3 * pass_.ms()),
      fmt::format("calls below {:.0f} us are short", 1e3 * kShortCallMs),
      "starting the work shows in so short a call; a larger --batch uses the machine better");
}

void Findings::judge_clocks() {
  const auto& reasons = pass_.result.measurement.device.slowed_by;
  if (reasons.empty()) return;
  add("clocks", Grade::poor, fmt::format("kept down by {}", fmt::join(reasons, ", ")),
      "clocks that are kept down are poor",
      "strobe info says how the GPU is set up and what would change it");
}

void Findings::judge_instructions() {
  const Counts& counts = pass_.counted.counts;
  const auto cycles = counts[Counter::cycles], instructions = counts[Counter::instructions];
  if (!pass_.on_cpu() || !cycles || !instructions || *cycles <= 0) return;
  const double rate = *instructions / *cycles;
  add("instructions", rate >= kInstructionsPerCycle ? Grade::good : Grade::fair,
      fmt::format("{:.2f} a cycle", rate),
      fmt::format("{:g} a cycle or more is good", kInstructionsPerCycle),
      "the cores wait, for memory if memory_metrics.txt shows many cache misses");
}

/// What to do about what warps wait for most.
std::string stall_advice(const DeviceCounts& counts) {
  const std::vector<Stall> all = stalls(counts);
  if (all.empty()) return "strobe tune looks for a faster way to cut this problem";
  return fmt::format(
      "warps wait for {} most ({}; compute_metrics.txt has the others); strobe tune looks for a "
      "way to cut the problem that waits less",
      all.front().reason, percent_text(all.front().part));
}

void Findings::judge_multiprocessors() {
  const auto active = average(pass_.device_counts, metric::kSmActive);
  if (!active) return;
  add("multiprocessors", kBusyTargets.grade(*active / 100),
      fmt::format("with work {} of the kernels' time", percent_text(*active / 100)),
      thresholds_text("with work for", kBusyTargets),
      "there are too few tiles, or they end unevenly: a larger --batch or --seqlen, or strobe tune "
      "for another way to cut the problem");
}

/// A problem that memory bounds should keep DRAM busy; one that it does not should fetch operands
/// once.
void Findings::judge_dram() {
  const auto busy = average(pass_.device_counts, metric::kDramBusy);
  const auto read = total(pass_.device_counts, metric::kDramRead);
  const auto written = total(pass_.device_counts, metric::kDramWritten);
  if (busy && pass_.roof.memory_bound()) {
    add("DRAM", kBandwidthTargets.grade(*busy / 100),
        fmt::format("{} of its peak", percent_text(*busy / 100)),
        thresholds_text("where memory is the bound,", kBandwidthTargets),
        stall_advice(pass_.device_counts));
  }
  if (!read || !written || pass_.least_bytes() <= 0) return;
  const double times = (*read + *written) / static_cast<double>(pass_.least_bytes());
  add("DRAM traffic", times <= kTrafficOnce ? Grade::good : Grade::fair,
      fmt::format("{:.2f} times the operands", times),
      fmt::format("{:g} times or less is good", kTrafficOnce),
      "operands are fetched more than once: larger tiles, or heads that share keys next to each "
      "other, keep them in the L2 cache");
}

void Findings::judge_tensor_cores() {
  const auto busy = average(pass_.device_counts, metric::kTensorBusy);
  const bool used = busy && *busy > 0;  // exact fp32 does without
  if (!used || pass_.roof.memory_bound()) return;
  add("tensor cores", kRateTargets.grade(*busy / 100),
      fmt::format("busy {} of the kernels' time", percent_text(*busy / 100)),
      thresholds_text("busy for", kRateTargets), stall_advice(pass_.device_counts));
}

void Findings::judge_spills() {
  std::int64_t most = 0;
  for (const CountedKernel& kernel : pass_.device_counts.kernels)
    most = std::max(most, kernel.launch.local_bytes);
  if (most == 0) return;
  add("local memory", Grade::poor, fmt::format("{} bytes of a thread", most),
      "kernels should keep everything in registers",
      "registers are spilled: strobe warmup shows which configuration spills, and strobe tune "
      "looks "
      "for one that does not");
}

}  // namespace

std::string_view name_of(Grade grade) {
  switch (grade) {
    case Grade::good:
      return "good";
    case Grade::fair:
      return "fair";
    case Grade::poor:
      break;
  }
  return "poor";
}

std::vector<Finding> findings_of(const PassProfile& pass, const Peaks& peaks) {
  Findings findings(pass);
  findings.judge_rate();
  findings.judge_busy(peaks.threads);
  findings.judge_speedup();
  findings.judge_dtype(peaks);
  findings.judge_instructions();
  findings.judge_multiprocessors();
  findings.judge_dram();
  findings.judge_tensor_cores();
  findings.judge_spills();
  findings.judge_size();
  findings.judge_steadiness();
  findings.judge_clocks();
  return findings.take();
}

}  // namespace strobe::lab
