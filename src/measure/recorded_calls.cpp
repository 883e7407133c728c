#include "measure/recorded_calls.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

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

/// With what it takes the first time: kernels are compiled once in a process.
Recording record_plans(const Implementation& implementation, Problem problem,
                       std::span<const Pass> passes, const PlanOptions& options) {
  const RecordingScope scope;
  for (const Pass pass : passes) {
    problem.pass = pass;
    implementation.plan(problem, options);
  }
  return stop_recording();
}

Recording record_runs(const Implementation& implementation, Operands& operands,
                      std::span<const Pass> passes, const PlanOptions& options,
                      const CallLimit& limit) {
  const Device device = device_of(implementation, options);
  const RecordingScope scope;
  for (const Pass pass : passes) {
    Span span("laboratory", pass == Pass::forward ? "forward pass" : "backward pass");
    if (span) span.tell("implementation", full_name(implementation));
    const auto execution = Execution::make(implementation, operands, pass, options);
    call_and_wait(*execution, device, "first call", 0);
    repeat(limit, [&](int number) { call_and_wait(*execution, device, "call", number); });
    execution->fetch();
  }
  return stop_recording();
}

}  // namespace

Recording record_calls(const Implementation& implementation, Problem problem,
                       std::span<const Pass> passes, const PlanOptions& options,
                       const CallLimit& limit) {
  Recording all = record_plans(implementation, problem, passes, options);
  problem.pass = passes.back();
  Operands operands({.problem = problem});
  if (passes.front() == Pass::backward) run_forward(implementation, operands, options);
  append_spans(all, record_runs(implementation, operands, passes, options, limit));
  return all;
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

}  // namespace strobe::lab
