#include "cli/info.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/gpu.h"
#include "measure/peaks.h"
#include "measure/sampler.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "verify/buffer.h"

namespace strobe::cli {
namespace {

/// Where the text goes: to the standard output, unless records do.
class Text {
 public:
  explicit Text(std::FILE* out) : out_(out) {}

  void line(const char* what, const std::string& value) const {
    fmt::print(out_, "{:<16} {}\n", what, value);
  }

  std::FILE* out() const { return out_; }

 private:
  std::FILE* out_;
};

void show_machine(const Text& text) {
  const Machine here = machine();
  text.line("Strobe", version());
  text.line("CPU", fmt::format("{} ({})", here.cpu, here.architecture));
  text.line("Threads", fmt::format("{} ({}); STROBE_THREADS=N or --threads N sets another number",
                                   here.cores, here.cores_reason));
  text.line("Pinning", threads_pinned()
                           ? "each thread to a core of its own (STROBE_PIN)"
                           : "only while timed; STROBE_PIN=1 pins each thread to a core");
  text.line("Memory", fmt::format("{}, {} free", lab::bytes_text(here.memory_bytes),
                                  lab::bytes_text(lab::available_memory())));
  text.line("Last-level cache",
            here.cache_bytes > 0 ? lab::bytes_text(here.cache_bytes) : "unknown");
  text.line("CPU kernels", fmt::format("{} (in use: {}; STROBE_CPU_ISA=NAME forces another)",
                                       fmt::join(here.isas, ", "), here.isa));
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

void show_peaks(const Text& text, const lab::Peaks& peaks) {
  const bool cpu = peaks.device.kind == Device::Kind::cpu;
  const std::string whose = cpu ? fmt::format("Peaks, measured with {} threads", peaks.threads)
                                : fmt::format("Peaks of {}", to_string(peaks.device));
  fmt::print(text.out(),
             "\n{}; {} does it again\n"
             "Multiply-adds are summed in fp32, those of int8 in int32\n",
             whose, lab::measuring_command(peaks));
  if (peaks.flops_per_second.empty()) text.line("  none", "they could not be measured");
  for (const auto& [dtype, best] : peaks.flops_per_second) {
    text.line(fmt::format("  {}", name_of(dtype)).c_str(), rates_text(peaks, dtype));
  }
  if (peaks.tf32_flops_per_second > 0) {
    text.line("  tf32", fmt::format("{:.4g} TFLOP/s", peaks.tf32_flops_per_second / 1e12));
  }
  for (const auto& rate : peaks.copy) {
    text.line(&rate == &peaks.copy.back() ? "  memory" : "  copy",
              fmt::format("{:.4g} GB/s read and written, {} {}", rate.bytes_per_second / 1e9,
                          lab::bytes_text(rate.bytes_per_thread), cpu ? "a thread" : "at a time"));
  }
}

/// Of every GPU that kernels are compiled for.
std::vector<lab::Peaks> gpu_peaks(const CudaStatus& cuda, bool measure) {
  std::vector<lab::Peaks> all;
  if (!cuda.unavailable.empty()) return all;
  for (const CudaDevice& gpu : cuda.devices) {
    if (gpu.architecture.empty()) continue;
    all.push_back(lab::peaks_of({Device::Kind::cuda, gpu.index}, 0, measure));
  }
  return all;
}

/// What sampling adds: to a sample, and to the time until the next one can begin.
struct Overhead {
  double sample_us = 0;
  double between_us = 0;
};

Overhead measure_overhead() {
  constexpr int kSamples = 20'000;
  const lab::Trial nothing{.prepare = [] {}, .run = [] {}, .check = [] {}};
  const auto start = std::chrono::steady_clock::now();
  const lab::Measurement m = lab::sample({&nothing, 1}, lab::SamplingPolicy::exactly(kSamples))[0];
  const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
  return {1e3 * m.ms.median, all.count() / kSamples};
}

void show_overhead(const Text& text, const Overhead& overhead) {
  text.line("  sampler",
            fmt::format("{:.3f} us in a sample of nothing, {:.3f} us from one to the next",
                        overhead.sample_us, overhead.between_us));
}

void show_implementations(const Text& text) {
  lab::Table table({{"Implementation"}, {"Device"}, {"What it is"}});
  for (const Implementation* implementation : Registry::instance().all()) {
    table.add_row({full_name(*implementation), to_string({.kind = implementation->device()}),
                   std::string(implementation->summary())});
  }
  fmt::print(text.out(), "\n{}", table.render());
}

nlohmann::json record_of(const CudaStatus& cuda, int threads,
                         const std::vector<lab::Peaks>& all_peaks,
                         const std::optional<Overhead>& overhead) {
  nlohmann::json implementations = nlohmann::json::array();
  for (const Implementation* implementation : Registry::instance().all()) {
    implementations.push_back({{"name", full_name(*implementation)},
                               {"device", to_string({.kind = implementation->device()})}});
  }
  nlohmann::json peaks = nlohmann::json::array();
  for (const lab::Peaks& of_device : all_peaks) peaks.push_back(lab::record_of(of_device));
  nlohmann::json record = lab::record_of_kind("machine", {{"version", version()},
                                                          {"machine", lab::machine_record(threads)},
                                                          {"cuda", cuda_record(cuda)},
                                                          {"peaks", peaks},
                                                          {"implementations", implementations}});
  if (overhead) {
    record["sampler_us"] = {{"sample", overhead->sample_us}, {"between", overhead->between_us}};
  }
  return record;
}

}  // namespace

int info(const InfoOptions& options) {
  lab::RecordWriter records = options.output.records();
  std::vector<lab::Peaks> peaks{lab::machine_peaks(options.threads, options.measure)};
  std::optional<Overhead> overhead;
  if (options.measure) overhead = measure_overhead();
  const CudaStatus cuda = cuda_status();
  const Text text(options.output.text());
  show_machine(text);
  show_gpus(text.out(), cuda);
  show_peaks(text, peaks.front());
  if (overhead) show_overhead(text, *overhead);
  for (lab::Peaks& of_gpu : gpu_peaks(cuda, options.measure)) {
    show_peaks(text, of_gpu);
    peaks.push_back(std::move(of_gpu));
  }
  show_implementations(text);
  records.write(record_of(cuda, options.threads, peaks, overhead));
  return kDone;
}

void add_info(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("info", "This machine as strobe sees it, and what it can run");
  auto options = std::make_shared<InfoOptions>();
  command->add_flag("--measure", options->measure,
                    "Measure its peaks again, and keep them for the rooflines of other commands");
  add_threads(*command, options->threads);
  options->output.add_to(*command);
  command->footer("Example:\n  strobe info --measure");
  command->callback([&status, options] { status = info(*options); });
}

}  // namespace strobe::cli
