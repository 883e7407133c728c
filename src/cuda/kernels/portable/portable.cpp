// The implementation "flash" of every GPU since sm_80, by the portable kernels.
#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/portable_backward/portable_backward.h"
#include "cuda/kernels/portable_forward/portable_forward.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cuda::portable {
namespace {

/// What keeps every GPU kernel from running here; found once.
const std::vector<std::string>& missing_here() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> missing;
    if (!driver::found().missing.empty()) {
      missing.push_back(driver::found().missing);
      return missing;
    }
    if (!jit::found_nvrtc().missing.empty()) missing.push_back(jit::found_nvrtc().missing);
    return missing;
  }();
  return list;
}

/// A pass of a problem, planned on a device.
template <class Planned>
struct State {
  template <class... Arguments>
  explicit State(const driver::Device& where, const Arguments&... arguments)
      : device(where), pass(where, arguments...) {}

  const driver::Device& device;
  Planned pass;
};

template <class Planned, class... Arguments>
Plan plan_of(const driver::Device& device, const Problem& problem, bool deterministic,
             const Arguments&... arguments) {
  auto state = std::make_shared<State<Planned>>(device, problem, arguments...);
  return {.problem = problem,
          .tuning = state->pass.tuning(),
          .workspace_bytes = state->pass.workspace_bytes(),
          .deterministic = deterministic,
          .state = state};
}

template <class Planned>
void run_pass(const Plan& plan, const Tensors& tensors, void* workspace, Stream stream) {
  const auto& state = *static_cast<const State<Planned>*>(plan.state.get());
  if (tensors.q.device.index != state.device.index()) {
    throw InvalidArgument("q", concat("is on ", to_string(tensors.q.device),
                                      ", the plan was made for device ", state.device.index()));
  }
  const driver::ContextScope scope(state.device);
  state.pass.run(tensors, workspace, static_cast<abi::Stream>(stream));
}

class Portable final : public Implementation {
 public:
  std::string_view name() const override { return "flash"; }
  std::string_view summary() const override {
    return "flash attention on GPUs since A100: tensor cores, online softmax";
  }
  Device::Kind device() const override { return Device::Kind::cuda; }

  Support supports(const Problem& problem) const override {
    Support support{.missing = missing_here()};
    for (auto& one : portable_forward::missing(problem)) support.missing.push_back(std::move(one));
    if (!support || problem.pass == Pass::forward) return support;
    const auto architecture = jit::Architecture::of(driver::Device::current());
    return {.missing = portable_backward::missing(problem, architecture)};
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const auto& device = driver::Device::at(options.device);
    const driver::ContextScope scope(device);
    if (problem.pass == Pass::forward)
      return plan_of<portable_forward::Forward>(device, problem, true, options.tf32);
    return plan_of<portable_backward::Backward>(device, problem, options.deterministic, options);
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    if (plan.problem.pass == Pass::forward)
      return run_pass<portable_forward::Forward>(plan, tensors, workspace, stream);
    run_pass<portable_backward::Backward>(plan, tensors, workspace, stream);
  }
};

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {};
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Portable>());
}

}  // namespace strobe::cuda::portable
