#include <fmt/format.h>

#include <algorithm>

#include "report/device_counters.h"
#include "report/profile.h"
#include "report/table.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

std::string metric(const char* what, const std::string& value) {
  return fmt::format("  {:<28}{}\n", what, value);
}

std::string rate_text(double bytes_per_second) {
  return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9);
}

std::string tera_text(double flops_per_second) {
  return fmt::format("{:.4g} TFLOP/s", flops_per_second / 1e12);
}

std::string part_of(double value, double of) {
  return of > 0 ? fmt::format(", {:.1f} % of it reached", 100 * value / of) : "";
}

/// Of one call; "" if it was not counted.
std::string counter_line(const PassProfile& pass, Counter counter) {
  const auto value = pass.counted.counts[counter];
  if (!value || pass.counted.calls == 0) return "";
  return metric(fmt::format("{}, a call:", name_of(counter)).c_str(),
                fmt::format("{:.4g}", *value / pass.counted.calls));
}

std::string counters_note(const PassProfile& pass) {
  const std::string& refused =
      pass.on_cpu() ? pass.counted.counts.refused : pass.device_counts.refused;
  return refused.empty() ? "" : metric("hardware counters:", refused);
}

/// What the GPU counted, after the rest.
std::string device_part(const DeviceCounts& counts, const std::vector<DeviceMetric>& metrics) {
  if (counts.kernels.empty()) return "";
  std::string text = "\nCounted by the GPU, a call with cold caches\n";
  for (const DeviceMetric& each : metrics) {
    if (const auto value = each.of_call(counts))
      text += fmt::format("  {:<34}{:<14}{}\n", each.words, each.text(*value), each.name);
  }
  for (const std::string& name : counts.unknown) {
    if (std::any_of(metrics.begin(), metrics.end(),
                    [&](const DeviceMetric& each) { return each.name == name; }))
      text += fmt::format("  {:<34}{}\n", "this GPU does not count", name);
  }
  return text + "\n" + kernel_counters_text(counts, metrics);
}

/// In what state the caches were counted; "" if they were not.
std::string cache_note(const DeviceCounts& counts) {
  if (counts.kernels.empty()) return "";
  return "Caches are emptied before a call, as ncu does before each kernel: the first kernel finds "
         "nothing there,\nthe others what those before them left. What is still there when a "
         "kernel ends is not yet written to DRAM.\n";
}

/// Scores and weights, as the unfused computation writes and reads them.
double unfused_bytes(const Problem& problem) {
  const double pairs = static_cast<double>(problem.batch) * static_cast<double>(problem.heads) *
                       static_cast<double>(problem.seqlen_q) * static_cast<double>(problem.keys());
  return pairs * static_cast<double>(size_of(problem.dtype));
}

std::string pass_memory(const PassProfile& pass, const Peaks& peaks) {
  const Memory& memory = pass.result.memory;
  const double reached = pass.bytes_per_second(), memory_rate = peaks.memory_bytes_per_second();
  std::string text = fmt::format("{}\n", pass.result.problem.text());
  text += metric("inputs, read once:", bytes_text(memory.inputs));
  text += metric("outputs, written once:", bytes_text(memory.outputs));
  text += metric("moved by a call, at least:", bytes_text(pass.least_bytes()));
  text += metric("workspace:", bytes_text(memory.workspace));
  text += metric(
      "one matrix of scores:",
      fmt::format("{}, where it is stored",
                  bytes_text(static_cast<std::int64_t>(unfused_bytes(pass.result.problem)))));
  text += metric("bandwidth, at least:", rate_text(reached));
  text += metric("memory, measured copy:", rate_text(memory_rate) + part_of(reached, memory_rate));
  text += metric("where the operands lie:", rate_text(pass.roof.bytes_per_second) +
                                                part_of(reached, pass.roof.bytes_per_second));
  text += counter_line(pass, Counter::cache_references);
  text += counter_line(pass, Counter::cache_misses);
  return text + counters_note(pass) + device_part(pass.device_counts, memory_counters()) +
         cache_note(pass.device_counts) + "\n";
}

/// How much each thread did, of what it could have done.
std::string thread_table(const Recording& recording) {
  Table table(
      {{"Thread"}, {"Busy (ms)", Align::right}, {"Shares", Align::right}, {"Items", Align::right}});
  for (const RecordedThread& thread : recording) {
    double busy_ms = 0;
    std::int64_t shares = 0, items = 0;
    for (const RecordedSpan& span : thread.spans) {
      if (span.category != "cpu") continue;
      ++shares;
      busy_ms += static_cast<double>(span.end_ns - span.begin_ns) / 1e6;
      for (const SpanArgument& argument : span.arguments) {
        const auto* number = std::get_if<std::int64_t>(&argument.value);
        if (argument.name == "items" && number != nullptr) items += *number;
      }
    }
    if (shares == 0) continue;
    table.add_row({thread.name, fmt::format("{:.3f}", busy_ms), std::to_string(shares),
                   std::to_string(items)});
  }
  return table.empty() ? "" : table.render();
}

std::string pass_compute(const PassProfile& pass) {
  const double reached = pass.flops_per_second();
  std::string text = fmt::format("{}\n", pass.result.problem.text());
  text += metric("FLOPs of a call:", fmt::format("{:.4g}", pass.result.flops));
  text += metric("time, median:", fmt::format("{:.3f} ms", pass.ms()));
  text += metric("rate:", tera_text(reached));
  text += metric("peak, measured:",
                 tera_text(pass.roof.peak_flops) + part_of(reached, pass.roof.peak_flops));
  text += metric("intensity:", fmt::format("{:.4g} FLOP/byte", pass.roof.intensity));
  text += metric("roof at that intensity:", tera_text(pass.roof.flops_per_second()) +
                                                part_of(reached, pass.roof.flops_per_second()));
  for (const Counter counter : {Counter::cycles, Counter::instructions, Counter::branch_misses})
    text += counter_line(pass, counter);
  const auto cycles = pass.counted.counts[Counter::cycles];
  if (cycles && *cycles > 0 && pass.counted.calls > 0) {
    const double flops = pass.result.flops * pass.counted.calls;
    text += metric("FLOPs a cycle:", fmt::format("{:.2f}", flops / *cycles));
    if (const auto instructions = pass.counted.counts[Counter::instructions])
      text += metric("instructions a cycle:", fmt::format("{:.2f}", *instructions / *cycles));
  }
  text += counters_note(pass) + device_part(pass.device_counts, compute_counters()) +
          stalls_text(pass.device_counts);
  const std::string threads = thread_table(pass.calls.host);
  return text + (threads.empty() ? "" : "\nThreads, over the recorded calls\n" + threads) + "\n";
}

}  // namespace

std::string memory_metrics_text(const Profile& profile) {
  std::string text;
  for (const PassProfile& pass : profile.passes) text += pass_memory(pass, profile.peaks);
  return text;
}

std::string compute_metrics_text(const Profile& profile) {
  std::string text;
  for (const PassProfile& pass : profile.passes) text += pass_compute(pass);
  return text;
}

}  // namespace strobe::lab
