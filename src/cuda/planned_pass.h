#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/text.h"
#include "cuda/driver/device.h"
#include "strobe/error.h"
#include "strobe/implementation.h"

// What implementations on GPUs have in common: a class for each pass, made for a problem and a
// device, that tells tuning() and workspace_bytes() and can run().
namespace strobe::cuda {

/// What keeps every GPU kernel from running on a device.
std::vector<std::string> missing_for_kernels(int device);

/// A pass of a problem, planned on a device.
template <class Planned>
struct PlannedPass {
  template <class... Arguments>
  explicit PlannedPass(const driver::Device& where, const Arguments&... arguments)
      : device(where), pass(where, arguments...) {}

  const driver::Device& device;
  Planned pass;
};

template <class Planned, class... Arguments>
Plan plan_of(const driver::Device& device, const Problem& problem, bool deterministic,
             const Arguments&... arguments) {
  auto state = std::make_shared<PlannedPass<Planned>>(device, problem, arguments...);
  return {.problem = problem,
          .tuning = state->pass.tuning(),
          .workspace_bytes = state->pass.workspace_bytes(),
          .deterministic = deterministic,
          .state = state};
}

template <class Planned>
void run_pass(const Plan& plan, const Tensors& tensors, void* workspace, Stream stream) {
  const auto& state = *static_cast<const PlannedPass<Planned>*>(plan.state.get());
  const driver::ContextScope scope(state.device);
  state.pass.run(tensors, workspace, static_cast<abi::Stream>(stream));
}

}  // namespace strobe::cuda
