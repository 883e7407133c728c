#include <fmt/format.h>

#include <algorithm>

#include "measure/device_metrics.h"
#include "report/device_counters.h"
#include "report/findings.h"
#include "report/kernel_summary.h"
#include "report/profile.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

/// Rows of a Markdown table with a column for each pass.
class PassTable {
 public:
  explicit PassTable(const Profile& profile) : profile_(profile) {
    row("", [](const PassProfile& pass) { return pass.name(); });
    text_ += "|---|";
    for (std::size_t i = 0; i < profile.passes.size(); ++i) text_ += "---|";
    text_ += "\n";
  }

  template <class Value>
  void row(const char* what, const Value& value) {
    text_ += fmt::format("| {} |", what);
    for (const PassProfile& pass : profile_.passes) text_ += fmt::format(" {} |", value(pass));
    text_ += "\n";
  }

  const std::string& text() const { return text_; }

 private:
  const Profile& profile_;
  std::string text_{};
};

std::string part_text(double value, double of) {
  return of > 0 ? fmt::format("{:.1f} %", 100 * value / of) : "unknown";
}

std::string figures_text(const Profile& profile) {
  PassTable table(profile);
  table.row("Time (median)", [](const auto& p) { return fmt::format("{:.3f} ms", p.ms()); });
  table.row("Rate", [](const auto& p) {
    return fmt::format("{:.4g} TFLOP/s", p.flops_per_second() / 1e12);
  });
  table.row("Of the measured peak",
            [](const auto& p) { return part_text(p.flops_per_second(), p.roof.peak_flops); });
  table.row("Of the roofline", [](const auto& p) {
    return part_text(p.flops_per_second(), p.roof.flops_per_second());
  });
  table.row("Arithmetic intensity",
            [](const auto& p) { return fmt::format("{:.3g} FLOP/byte", p.roof.intensity); });
  table.row("Bound by", [](const auto& p) { return p.roof.memory_bound() ? "memory" : "compute"; });
  table.row("Bandwidth, at least", [](const auto& p) {
    return fmt::format("{:.3g} GB/s, {} of the measured copy rate", p.bytes_per_second() / 1e9,
                       part_text(p.bytes_per_second(), p.roof.bytes_per_second));
  });
  table.row("Memory", [](const auto& p) { return bytes_text(p.result.memory.peak()); });
  if (profile.passes.front().on_cpu()) {
    table.row("Threads busy", [&](const auto& p) {
      return fmt::format("{:.1f} %", 100 * busy_part(p.calls.host, profile.peaks.threads));
    });
  } else {
    const auto part = [&](const char* what, const char* metric) {
      table.row(what, [&](const auto& p) {
        const auto value = average(p.device_counts, metric);
        return value ? fmt::format("{:.1f} % of its peak", *value) : "not counted";
      });
    };
    part("DRAM", metric::kDramBusy);
    part("Multiprocessors (SM)", metric::kSmThroughput);
    part("Tensor cores", metric::kTensorBusy);
  }
  table.row("Against the unfused computation", [](const auto& p) {
    return p.speedup ? fmt::format("{:.2f}x", *p.speedup) : "it did not run";
  });
  return table.text();
}

std::string device_counters_text(const Profile& profile) {
  const DeviceCounts& first = profile.passes.front().device_counts;
  if (!first.refused.empty()) return fmt::format("None: {}.\n", first.refused);
  if (first.kernels.empty()) return "None: the calls launched no kernel.\n";
  PassTable table(profile);
  const auto add = [&](const std::vector<DeviceMetric>& metrics) {
    for (const DeviceMetric& each : metrics) {
      table.row(each.words, [&](const PassProfile& pass) {
        const auto value = each.of_call(pass.device_counts);
        return value ? each.text(*value) : "not counted here";
      });
    }
  };
  add(memory_counters());
  add(compute_counters());
  return fmt::format(
      "A call with cold caches, all of its kernels together; `memory_metrics.txt` and "
      "`compute_metrics.txt` have each kernel:\n\n{}",
      table.text());
}

std::string counters_text(const Profile& profile) {
  const PassProfile& first = profile.passes.front();
  if (!first.on_cpu()) return device_counters_text(profile);
  if (!first.counted.counts.refused.empty())
    return fmt::format("None: {}.\n", first.counted.counts.refused);
  PassTable table(profile);
  for (const Counter counter : kCounters) {
    table.row(std::string(name_of(counter)).c_str(), [&](const PassProfile& pass) -> std::string {
      const auto value = pass.counted.counts[counter];
      if (!value) return "not counted here";
      return fmt::format("{:.4g}", *value / std::max(pass.counted.calls, 1));
    });
  }
  return "A call, all threads together:\n\n" + table.text();
}

std::vector<Finding> all_findings(const Profile& profile) {
  std::vector<Finding> all;
  for (const PassProfile& pass : profile.passes) {
    for (Finding& finding : findings_of(pass, profile.peaks)) all.push_back(std::move(finding));
  }
  return all;
}

std::string verdict_text(const std::vector<Finding>& findings) {
  const auto of_grade = [&](Grade grade) {
    std::vector<std::string> subjects;
    for (const Finding& finding : findings) {
      if (finding.grade == grade) subjects.push_back(finding.subject);
    }
    return subjects;
  };
  const auto poor = of_grade(Grade::poor), fair = of_grade(Grade::fair);
  if (!poor.empty()) return fmt::format("needs work: {}", fmt::join(poor, "; "));
  if (!fair.empty()) return fmt::format("good, with room: {}", fmt::join(fair, "; "));
  return "good: every target is met";
}

std::string targets_text(const std::vector<Finding>& findings) {
  std::string text = "| | grade | figure | rule |\n|---|---|---|---|\n";
  for (const Finding& f : findings) {
    text += fmt::format("| {} | {} | {} | {} |\n", f.subject, name_of(f.grade), f.figure, f.rule);
  }
  return text;
}

std::string advice_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) {
    if (!f.advice.empty())
      text += fmt::format("- {} is {} ({}; rule: {}): {}.\n", f.subject, name_of(f.grade), f.figure,
                          f.rule, f.advice);
  }
  return text.empty() ? "None: nothing that a rule looks at is below its target.\n" : text;
}

/// What is in the trace of a pass.
std::string traced_text(const PassProfile& pass) {
  if (pass.on_cpu()) return "every thread's spans";
  if (pass.calls.device.refused.empty())
    return "every thread's spans, and the kernels and copies of the GPU";
  return "every thread's spans, and nothing of the GPU: kernel_summary.txt says why";
}

std::string files_text(const Profile& profile) {
  std::string text =
      "- `baseline_benchmark.txt`: times, rates, memory and error, as `strobe bench` prints them\n"
      "- `comparison_results.txt`: the same problem by other implementations\n"
      "- `gpu_info.txt`: this machine and its GPUs, and their measured peaks\n"
      "- `kernel_summary.txt`: where the time of a call goes, by phase\n"
      "- `memory_metrics.txt`, `compute_metrics.txt`: bytes and bandwidth, FLOPs and rates\n"
      "- `roofline.svg`: the passes under the roof of this machine\n";
  for (const PassProfile& pass : profile.passes) {
    text += fmt::format("- `trace_{}.json`: {}; chrome://tracing and ui.perfetto.dev open it\n",
                        pass.name(), traced_text(pass));
  }
  return text;
}

std::string tools_text(const std::vector<ExternalTool>& tools) {
  std::string text;
  for (const ExternalTool& tool : tools) {
    if (tool.trouble.empty())
      text += fmt::format("- `{}` left {}: `{}`.\n", tool.name, tool.adds,
                          fmt::join(tool.files, "`, `"));
    else
      text += fmt::format("- `{}` ({}) would add {}.\n", tool.name, tool.trouble, tool.adds);
  }
  return text;
}

}  // namespace

std::string verdict_text(const Profile& profile) {
  return verdict_text(all_findings(profile));
}

std::string summary_text(const Profile& profile, const std::vector<ExternalTool>& tools) {
  const Benchmark& first = profile.first();
  const std::vector<Finding> findings = all_findings(profile);
  Problem shown = first.problem;
  shown.pass = Pass::forward;
  return fmt::format(
      "# Profile of {0} on {1}\n\n"
      "Start here. Measured on {2}; {0} was planned with {3}.\n\n"
      "## Verdict\n\n**{4}**\n\n## Figures\n\n{5}\n## Targets\n\n{6}\n## Advice\n\n{7}\n"
      "## Hardware counters\n\n{8}\n## Files\n\n{9}\n## NVIDIA's tools\n\n{10}",
      first.implementation, shown.text(), profile.machine, tuning_text(first.tuning),
      verdict_text(findings), figures_text(profile), targets_text(findings), advice_text(findings),
      counters_text(profile), files_text(profile), tools_text(tools));
}

}  // namespace strobe::lab
