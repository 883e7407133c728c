// The implementation "flash" of every GPU since sm_80, by the portable kernels.
#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/jit/nvrtc.h"
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

class Portable final : public Implementation {
 public:
  std::string_view name() const override { return "flash"; }
  std::string_view summary() const override {
    return "flash attention on GPUs since A100: tensor cores, online softmax";
  }
  Device::Kind device() const override { return Device::Kind::cuda; }

  Support supports(const Problem& problem) const override {
    Support support{.missing = missing_here()};
    if (problem.pass == Pass::backward) support.missing.emplace_back("the backward pass");
    for (auto& one : portable_forward::missing(problem)) support.missing.push_back(std::move(one));
    return support;
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const auto& device = driver::Device::at(options.device);
    const driver::ContextScope scope(device);
    auto state = std::make_shared<State>(device, problem, options.tf32);
    return {.problem = problem,
            .tuning = state->forward.tuning(),
            .workspace_bytes = state->forward.workspace_bytes(),
            .state = state};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    const auto& state = *static_cast<const State*>(plan.state.get());
    if (tensors.q.device.index != state.device.index()) {
      throw InvalidArgument("q", concat("is on ", to_string(tensors.q.device),
                                        ", the plan was made for device ", state.device.index()));
    }
    const driver::ContextScope scope(state.device);
    state.forward.run(tensors, workspace, static_cast<abi::Stream>(stream));
  }

 private:
  struct State {
    State(const driver::Device& where, const Problem& problem, bool tf32)
        : device(where), forward(where, problem, tf32) {}

    const driver::Device& device;
    portable_forward::Forward forward;
  };
};

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {};
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Portable>());
}

}  // namespace strobe::cuda::portable
