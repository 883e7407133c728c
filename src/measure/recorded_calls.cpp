#include "measure/recorded_calls.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "measure/device_metrics.h"
#include "strobe/accelerator.h"
#include "verify/execution.h"
#include "verify/operands.h"

namespace strobe::lab {
namespace {

/// Nothing goes on being recorded, whatever happens.
class RecordingScope {
 public:
  RecordingScope() { start_recording(); }
  ~RecordingScope() { stop_recording(); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

/// Until the limit is reached.
template <class Body>
int repeat(const CallLimit& limit, const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  int done = 0;
  do {
    body(++done);
  } while (done < limit.calls &&
           std::chrono::steady_clock::now() - start < std::chrono::duration<double>(limit.seconds));
  return done;
}

void call_and_wait(Execution& execution, Device device, const char* name, std::int64_t number) {
  Span span("laboratory", name);
  span.tell("number", number);
  execution.run();
  if (device.kind == Device::Kind::cpu) return;
  Span waiting("laboratory", "wait for the device");
  waiting.tell("device", to_string(device));
  accelerator(device).wait();
}

void append_spans(Recording& all, Recording more) {
  for (RecordedThread& thread : more) {
    const auto same = [&](const RecordedThread& other) { return other.id == thread.id; };
    const auto known = std::find_if(all.begin(), all.end(), same);
    if (known == all.end()) {
      all.push_back(std::move(thread));
      continue;
    }
    std::move(thread.spans.begin(), thread.spans.end(), std::back_inserter(known->spans));
    known->dropped += thread.dropped;
  }
}

std::int64_t first_begin(const Recording& recording) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const RecordedThread& thread : recording) {
    if (!thread.spans.empty()) first = std::min(first, thread.spans.front().begin_ns);
  }
  return first;
}

std::int64_t last_end(const Recording& recording) {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const RecordedThread& thread : recording) {
    for (const RecordedSpan& span : thread.spans) last = std::max(last, span.end_ns);
  }
  return last;
}

void call_passes(const Implementation& implementation, Operands& operands,
                 std::span<const Pass> passes, const PlanOptions& options, const CallLimit& limit) {
  const Device device = device_of(implementation, options);
  for (const Pass pass : passes) {
    Span span("laboratory", pass == Pass::forward ? "forward pass" : "backward pass");
    if (span) span.tell("implementation", full_name(implementation));
    const auto execution = Execution::make(implementation, operands, pass, options);
    call_and_wait(*execution, device, "first call", 0);
    repeat(limit, [&](int number) { call_and_wait(*execution, device, "call", number); });
    execution->fetch();
  }
}

}  // namespace

Recording record_plans(const Implementation& implementation, Problem problem,
                       std::span<const Pass> passes, const PlanOptions& options) {
  const RecordingScope scope;
  for (const Pass pass : passes) {
    problem.pass = pass;
    implementation.plan(problem, options);
  }
  return stop_recording();
}

RecordedCalls record_runs(const Implementation& implementation, Problem problem,
                          std::span<const Pass> passes, const PlanOptions& options,
                          const CallLimit& limit) {
  const Device device = device_of(implementation, options);
  problem.pass = passes.back();
  Operands operands({.problem = problem});
  if (passes.front() == Pass::backward) run_forward(implementation, operands, options);
  RecordedCalls calls;
  const auto record = [&] {
    const RecordingScope scope;
    call_passes(implementation, operands, passes, options, limit);
    calls.host = stop_recording();
  };
  if (device.kind == Device::Kind::cpu)
    record();
  else
    calls.device = accelerator(device).observe(record);
  return calls;
}

void call_only(const Implementation& implementation, Problem problem, std::span<const Pass> passes,
               const PlanOptions& options, int calls, bool cold) {
  const Device device = device_of(implementation, options);
  problem.pass = passes.back();
  Operands operands({.problem = problem});
  if (passes.front() == Pass::backward) run_forward(implementation, operands, options);
  for (const Pass pass : passes) {
    const auto execution = Execution::make(implementation, operands, pass, options);
    for (int number = 0; number < calls; ++number) {
      if (cold && device.kind != Device::Kind::cpu) accelerator(device).evict_caches();
      call_and_wait(*execution, device, "call", number);
    }
    execution->fetch();
  }
}

RecordedCalls with_plans(Recording plans, RecordedCalls runs) {
  const std::int64_t later = first_begin(runs.host) - last_end(plans);
  for (RecordedThread& thread : plans) {
    for (RecordedSpan& span : thread.spans) {
      span.begin_ns += later;
      span.end_ns += later;
    }
  }
  append_spans(plans, std::move(runs.host));
  return {.host = std::move(plans), .device = std::move(runs.device)};
}

CountedCalls count_calls(const Implementation& implementation, const Problem& problem,
                         const PlanOptions& options, const CallLimit& limit,
                         const OpenCounter& open) {
  const Device device = device_of(implementation, options);
  Operands operands({.problem = problem});
  if (problem.pass == Pass::backward) run_forward(implementation, operands, options);
  const auto execution = Execution::make(implementation, operands, problem.pass, options);
  call_and_wait(*execution, device, "first call", 0);
  CountedCalls counted;
  counted.counts = count(
      [&] {
        counted.calls =
            repeat(limit, [&](int number) { call_and_wait(*execution, device, "call", number); });
      },
      open);
  return counted;
}

DeviceCounts count_on_device(const Implementation& implementation, const Problem& problem,
                             const PlanOptions& options) {
  const Accelerator& device = accelerator(device_of(implementation, options));
  Operands operands({.problem = problem});
  if (problem.pass == Pass::backward) run_forward(implementation, operands, options);
  const auto execution = Execution::make(implementation, operands, problem.pass, options);
  execution->run();
  device.wait();
  return device.count(device_metrics(), [&] { execution->run(); });
}

}  // namespace strobe::lab
