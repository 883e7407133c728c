#include "experiment/subjects.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"
#include "strobe/accelerator.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/buffer.h"

namespace strobe::lab {
namespace {

const Implementation& named_on(Device device, const std::string& name) {
  const bool cpu = device.kind == Device::Kind::cpu;
  return Registry::instance().find(cpu ? name : "cuda:" + name);
}

}  // namespace

const Implementation& flash_on(Device device) {
  return named_on(device, "flash");
}

const Implementation& unfused_on(Device device) {
  return named_on(device, "standard");
}

std::int64_t planned_bytes(const Implementation& implementation, const Problem& problem,
                           const PlanOptions& options) {
  const Footprint operands = footprint(problem);
  const Plan plan = implementation.plan(problem, options);
  return operands.inputs + operands.outputs + static_cast<std::int64_t>(plan.workspace_bytes);
}

std::int64_t memory_budget(const ExperimentSetup& setup) {
  if (setup.memory_limit > 0) return setup.memory_limit;
  std::int64_t free = available_memory();
  if (!setup.on_cpu()) free = std::min(free, accelerator(setup.device).free_bytes());
  return free / 5 * 4;
}

Problem fitting_problem(const ExperimentSetup& setup, Problem usual,
                        const std::function<std::int64_t(const Problem&)>& bytes) {
  const std::int64_t budget = memory_budget(setup);
  while (bytes(usual) > budget && (usual.batch > 1 || usual.heads > 1)) {
    (usual.batch > 1 ? usual.batch : usual.heads) /= 2;
  }
  Problem problem = setup.problem(usual);
  const std::int64_t needed = bytes(problem);
  if (needed <= budget) return problem;
  throw OutOfMemory(
      fmt::format("{} takes {}, and {} may be taken; make it smaller, or raise "
                  "--memory-limit if there is more",
                  problem.text(), bytes_text(needed), bytes_text(budget)));
}

std::vector<Benchmark> time_rivals(const ExperimentSetup& setup,
                                   const std::vector<const Implementation*>& rivals,
                                   const Problem& problem) {
  Operands operands({.problem = problem});
  const SpotCheck check(operands, problem.pass);
  return benchmark(rivals, operands, problem.pass, &check, setup.options, setup.sampling);
}

void require_timed(const std::vector<Benchmark>& results) {
  for (const Benchmark& result : results) {
    if (!result.timed()) throw Error(reason_text(result.implementation, result.reason));
  }
}

std::string subject_text(const ExperimentSetup& setup, const Problem& problem) {
  return fmt::format("{} on {}", problem.text(),
                     setup.on_cpu() ? "the CPU" : to_string(setup.device));
}

Conclusion is_faster(const Benchmark& faster, const Benchmark& slower) {
  const auto& a = faster.measurement.ms.ci95;
  const auto& b = slower.measurement.ms.ci95;
  if (!a || !b) return Conclusion::undecided;
  if (a->high < b->low) return Conclusion::held;
  return b->high < a->low ? Conclusion::failed : Conclusion::undecided;
}

}  // namespace strobe::lab
