#include "measure/repeated_calls.h"

#include <fmt/format.h>

#include <array>

#include "measure/flops.h"
#include "measure/host_state.h"

namespace strobe::lab {

RepeatedCalls::RepeatedCalls(const Implementation& implementation, const Problem& problem,
                             const PlanOptions& options)
    : device_(device_of(implementation, options)), operands_({.problem = problem}) {
  if (problem.pass == Pass::backward) run_forward(implementation, operands_, options);
  execution_ = Execution::make(implementation, operands_, problem.pass, options);
}

Trial RepeatedCalls::trial() {
  return {.prepare = [this] { execution_->poison_outputs(); },
          .run = [this] { execution_->run(); },
          .check =
              [this] {
                const std::string output = execution_->unwritten();
                if (!output.empty())
                  throw Rejected(fmt::format("a call had not written {} when it returned", output));
              },
          .stopwatch = &stopwatch_of(device_)};
}

RepeatedCalls::Round RepeatedCalls::next(double seconds) {
  const SamplingPolicy policy{.max_warmup = 1,
                              .target = 0,
                              .min_samples = 1,
                              .max_samples = 1'000'000,
                              .budget_s = seconds};
  const std::array trials{trial()};
  Round round{.measurement = std::move(sample(trials, policy).front())};
  if (round.measurement.failure) std::rethrow_exception(round.measurement.failure);
  round.state = round.measurement.device.during.value_or(DeviceState{});
  if (device_.kind == Device::Kind::cpu) round.state = host_state();
  round.flops_per_second = flops(operands_.problem()) / round.measurement.ms.median * 1e3;
  return round;
}

}  // namespace strobe::lab
