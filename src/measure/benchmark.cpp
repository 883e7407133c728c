#include "measure/benchmark.h"

#include <fmt/format.h>

#include "verify/execution.h"

namespace strobe::lab {
namespace {

void reject_if_unwritten(const Operands& operands, Pass pass) {
  const std::string output = operands.unwritten(pass);
  if (output.empty()) return;
  throw Rejected(fmt::format("left {} unwritten, so its time means nothing", output));
}

void run_forward(const Implementation& implementation, Operands& operands,
                 const PlanOptions& options) {
  operands.poison_outputs(Pass::forward);
  Execution(implementation, operands, Pass::forward, options).run();
  reject_if_unwritten(operands, Pass::forward);
}

void measure(const Implementation& implementation, Operands& operands, const SpotCheck& check,
             const PlanOptions& options, const SamplingPolicy& policy, Benchmark& result) {
  const Pass pass = result.problem.pass;
  if (pass == Pass::backward) run_forward(implementation, operands, options);
  Execution execution(implementation, operands, pass, options);
  result.tuning = execution.plan().tuning;
  result.workspace_bytes = execution.plan().workspace_bytes;
  result.measurement = sample({.prepare = [&] { operands.poison_outputs(pass); },
                               .run = [&] { execution.run(); },
                               .check = [&] { reject_if_unwritten(operands, pass); }},
                              policy);
  result.accuracy = check.judge();
  if (result.accuracy.verdict == Verdict::fail) {
    result.status = Status::failed;
    result.reason = result.accuracy.reason;
  }
}

}  // namespace

Benchmark benchmark(const Implementation& implementation, Operands& operands, Pass pass,
                    const SpotCheck& check, const PlanOptions& options,
                    const SamplingPolicy& policy) {
  Benchmark result{.implementation = std::string(implementation.name()),
                   .device = implementation.device(),
                   .problem = operands.problem()};
  result.problem.pass = pass;
  result.flops = flops(result.problem);
  result.operands = footprint(result.problem);
  const auto give_up = [&result](Status status, const Error& error) {
    result.status = status;
    result.reason = error.what();
  };
  try {
    measure(implementation, operands, check, options, policy, result);
  } catch (const Unsupported& error) {
    give_up(Status::unsupported, error);
  } catch (const OutOfMemory& error) {
    give_up(Status::out_of_memory, error);
  } catch (const Rejected& error) {
    give_up(Status::failed, error);
  }
  return result;
}

}  // namespace strobe::lab
