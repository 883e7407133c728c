#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "measure/peaks.h"
#include "measure/sampler.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "verify/buffer.h"

namespace strobe::cli {
namespace {

void line(const char* what, const std::string& value) {
  fmt::print("{:<16} {}\n", what, value);
}

void show_machine() {
  const Machine here = machine();
  line("Strobe", version());
  line("CPU", fmt::format("{} ({})", here.cpu, here.architecture));
  line("Threads", fmt::format("{} ({}); STROBE_THREADS=N or --threads N sets another number",
                              here.cores, here.cores_reason));
  line("Pinning", threads_pinned() ? "each thread to a core of its own (STROBE_PIN)"
                                   : "only while timed; STROBE_PIN=1 pins each thread to a core");
  line("Memory", fmt::format("{}, {} free", lab::bytes_text(here.memory_bytes),
                             lab::bytes_text(lab::available_memory())));
  line("Last-level cache", here.cache_bytes > 0 ? lab::bytes_text(here.cache_bytes) : "unknown");
  line("CPU kernels", fmt::format("{} (in use: {}; STROBE_CPU_ISA=NAME forces another)",
                                  fmt::join(here.isas, ", "), here.isa));
  line("GPU", "none used: this build has no CUDA backend");
}

/// "5.09 TFLOP/s by amx, 0.597 by avx512-bf16": the best, and what else there is.
std::string rates_text(const lab::Peaks& peaks, DType dtype) {
  const char* const unit = dtype == DType::int8 ? "TOP/s" : "TFLOP/s";
  std::vector<lab::Peaks::InstructionRate> rates;
  for (const auto& rate : peaks.instructions)
    if (rate.dtype == dtype) rates.push_back(rate);
  std::sort(rates.begin(), rates.end(),
            [](const auto& a, const auto& b) { return a.per_second > b.per_second; });
  if (rates.empty())
    return fmt::format("{:.4g} {} as fp32", peaks.flops_per_second.at(dtype) / 1e12, unit);
  std::string text;
  for (const auto& rate : rates) {
    text += fmt::format("{}{:.4g}{} by {}", text.empty() ? "" : ", ", rate.per_second / 1e12,
                        text.empty() ? fmt::format(" {}", unit) : "", rate.name);
  }
  return text;
}

void show_peaks(const lab::Peaks& peaks) {
  fmt::print(
      "\nPeaks, measured with {} threads; strobe info --measure does it again\n"
      "Multiply-adds are summed in fp32, those of int8 in int32\n",
      peaks.threads);
  for (const auto& [dtype, best] : peaks.flops_per_second) {
    line(fmt::format("  {}", name_of(dtype)).c_str(), rates_text(peaks, dtype));
  }
  for (const auto& rate : peaks.copy) {
    line(&rate == &peaks.copy.back() ? "  memory" : "  copy",
         fmt::format("{:.4g} GB/s read and written, {} a thread", rate.bytes_per_second / 1e9,
                     lab::bytes_text(rate.bytes_per_thread)));
  }
}

/// What sampling adds: to a sample, and to the time until the next one can begin.
void show_overhead() {
  constexpr int kSamples = 20'000;
  const lab::Trial nothing{.prepare = [] {}, .run = [] {}, .check = [] {}};
  const auto start = std::chrono::steady_clock::now();
  const lab::Measurement m = lab::sample({&nothing, 1}, lab::SamplingPolicy::exactly(kSamples))[0];
  const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
  line("  sampler", fmt::format("{:.3f} us in a sample of nothing, {:.3f} us from one to the next",
                                1e3 * m.ms.median, all.count() / kSamples));
}

void show_implementations() {
  lab::Table table({{"Implementation"}, {"Device"}, {"What it is"}});
  for (const Implementation* implementation : Registry::instance().all()) {
    table.add_row({std::string(implementation->name()),
                   to_string({.kind = implementation->device()}),
                   std::string(implementation->summary())});
  }
  fmt::print("\n{}", table.render());
}

/// This machine as strobe sees it, and what it can run.
int info(int threads, bool measure) {
  const lab::Peaks peaks = lab::machine_peaks(threads, measure);
  show_machine();
  show_peaks(peaks);
  if (measure) show_overhead();
  show_implementations();
  return kDone;
}

}  // namespace

void add_info(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("info", "This machine as strobe sees it, and what it can run");
  auto measure = std::make_shared<bool>(false);
  command->add_flag("--measure", *measure,
                    "Measure its peaks again, and keep them for the rooflines of other commands");
  auto threads = std::make_shared<int>(0);
  add_threads(*command, *threads);
  command->footer("Example:\n  strobe info --measure");
  command->callback([&status, measure, threads] { status = info(*threads, *measure); });
}

}  // namespace strobe::cli
