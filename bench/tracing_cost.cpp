// What tracing costs: tracing_cost [cpu | cuda] [PROBLEM]
//
// Plain calls and calls whose spans are recorded take turns, so that whatever the machine does it
// does to both; on a GPU calls that CUPTI watches come after them, for it stays in the process.
// Shown are the medians and what they are more than that of the plain ones. A span that nobody
// listens to is too cheap to be seen in a call; its cost is measured by itself and set against a
// call with as many of them as were recorded.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "measure/statistics.h"
#include "strobe/accelerator.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "strobe/trace.h"
#include "verify/execution.h"
#include "verify/operands.h"
#include "workload/setting.h"

namespace {

using namespace strobe;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Nanoseconds of a span while nobody listens.
double idle_span_ns() {
  constexpr int kSpans = 10'000'000;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kSpans; ++i) const Span span("bench", "idle");
  return ms_since(start) * 1e6 / kSpans;
}

class Calls {
 public:
  Calls(const Implementation& implementation, const Problem& problem)
      : device_(lab::device_of(implementation, {})),
        operands_({.problem = problem}),
        execution_(lab::Execution::make(implementation, operands_, Pass::forward)) {}

  bool on_gpu() const { return device_.kind != Device::Kind::cpu; }

  void plain() { plain_.push_back(time()); }

  void recorded() {
    start_recording();
    recorded_.push_back(time());
    const Recording recording = stop_recording();
    spans_ = 0;
    for (const RecordedThread& thread : recording) spans_ += thread.spans.size();
  }

  /// Several at a time, for to begin and end watching takes far longer than a call.
  void watched(int calls) {
    const DeviceActivity activity = accelerator(device_).observe([&] {
      for (int i = 0; i < calls; ++i) watched_.push_back(time());
    });
    refused_ = activity.refused;
  }

  void show() const {
    const double base = lab::summarize(plain_).median;
    const auto line = [&](const char* what, double ms) {
      fmt::print("{:<28}{:10.4f} ms{:+9.2f} %\n", what, ms, 100 * (ms / base - 1));
    };
    line("plain", base);
    const double idle_ms = idle_span_ns() * static_cast<double>(spans_) / 1e6;
    fmt::print("{:<28}{:>13}{:+9.2f} %  ({} spans that nobody listens to)\n", "  of that, spans",
               "", 100 * idle_ms / base, spans_);
    line("spans recorded", lab::summarize(recorded_).median);
    if (!on_gpu()) return;
    if (refused_.empty())
      line("GPU watched by CUPTI", lab::summarize(watched_).median);
    else
      fmt::print("GPU watched by CUPTI: {}\n", refused_);
  }

 private:
  double time() {
    const Clock::time_point start = Clock::now();
    execution_->run();
    if (on_gpu()) accelerator(device_).wait();
    return ms_since(start);
  }

  Device device_;
  lab::Operands operands_;
  std::unique_ptr<lab::Execution> execution_;
  std::vector<double> plain_{}, recorded_{}, watched_{};
  std::size_t spans_ = 0;
  std::string refused_{};
};

void measure(const std::string& device, const std::string& problem_text) {
  const Problem problem =
      problem_text.empty() ? lab::default_problem() : Problem::parse(problem_text);
  const Device::Kind kind = device == "cuda" ? Device::Kind::cuda : Device::Kind::cpu;
  const Implementation& implementation = Registry::instance().best(problem, {.kind = kind});
  Calls calls(implementation, problem);
  constexpr double kSeconds = 4;
  constexpr int kTogether = 20;
  fmt::print("{} on {}\n", problem.text(), full_name(implementation));
  const auto take_turns = [&] {
    for (int i = 0; i < kTogether; ++i) {
      calls.plain();
      calls.recorded();
    }
  };
  const Clock::time_point start = Clock::now();
  do take_turns();
  while (ms_since(start) < kSeconds * 1e3);
  if (calls.on_gpu()) calls.watched(10 * kTogether);  // last: CUPTI stays in the process
  calls.show();
}

}  // namespace

int main(int count, char** words) {
  try {
    measure(count > 1 ? words[1] : "cpu", count > 2 ? words[2] : "");
  } catch (const strobe::Error& error) {
    fmt::print(stderr, "tracing_cost: {}\n", error.what());
    return 3;
  }
  return 0;
}
