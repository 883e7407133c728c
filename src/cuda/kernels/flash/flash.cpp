// The implementation "flash" of every GPU since sm_80.
#include "cuda/kernels/flash/flash.h"

#include "cuda/kernels/flash/backward_pass.h"
#include "cuda/kernels/flash/forward_pass.h"
#include "cuda/planned_pass.h"
#include "strobe/registry.h"

namespace strobe::cuda::flash {
namespace {

bool has_hopper_kernel(const Problem& problem, const driver::Device& device) {
  const auto architecture = jit::Architecture::of(device);
  return problem.pass == Pass::forward ? ForwardPass::has_hopper_kernel(problem, architecture)
                                       : BackwardPass::has_hopper_kernel(problem, architecture);
}

class Flash final : public Implementation {
 public:
  std::string_view name() const override { return "flash"; }
  std::string_view summary() const override {
    return "flash attention on GPUs since A100: tensor cores, online softmax";
  }
  Device::Kind device() const override { return Device::Kind::cuda; }

  Support supports(const Problem& problem, const PlanOptions& options) const override {
    Support support{.missing = missing_for_kernels(options.device)};
    for (auto& one : portable_forward::missing(problem)) support.missing.push_back(std::move(one));
    if (!support) return support;
    const driver::Device& device = driver::Device::at(options.device);
    const bool hopper = has_hopper_kernel(problem, device);
    if (problem.pass == Pass::forward) {
      support.kernel = hopper ? "hopper_forward" : "portable_forward";
    } else {
      support.kernel = hopper ? "hopper_backward" : "portable_backward";
      support.missing = portable_backward::missing(problem, jit::Architecture::of(device));
    }
    return support;
  }

  std::vector<std::string> variants(const Problem& problem,
                                    const PlanOptions& options) const override {
    if (!supports(problem, options)) return {};
    const auto& device = driver::Device::at(options.device);
    if (!has_hopper_kernel(problem, device)) return {};
    return flash::variants(problem, options, jit::Architecture::of(device),
                           device.multiprocessors());
  }

  void keep_variant(const Problem& problem, const PlanOptions& options,
                    const std::optional<TunedVariant>& tuned) const override {
    const auto& device = driver::Device::at(options.device);
    if (!has_hopper_kernel(problem, device))
      Implementation::keep_variant(problem, options, tuned);
    else if (problem.pass == Pass::forward)
      hopper_forward::keep_variant(device, problem, options, tuned);
    else
      hopper_backward::keep_variant(device, problem, options, tuned);
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const auto& device = driver::Device::at(options.device);
    const driver::ContextScope scope(device);
    if (problem.pass == Pass::forward) return plan_of<ForwardPass>(device, problem, true, options);
    return plan_of<BackwardPass>(device, problem, options.deterministic, options);
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    if (plan.problem.pass == Pass::forward)
      return run_pass<ForwardPass>(plan, tensors, workspace, stream);
    run_pass<BackwardPass>(plan, tensors, workspace, stream);
  }
};

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {};
}

std::vector<std::string> variants(const Problem& problem, const PlanOptions& options,
                                  const jit::Architecture& architecture, int multiprocessors) {
  if (hopper_forward::takes(problem, architecture))
    return hopper_forward::variants(problem, options, multiprocessors);
  if (hopper_backward::takes(problem, architecture))
    return hopper_backward::variants(problem, options);
  return {};
}

jit::KernelDescription describe_variant(const Problem& problem, const PlanOptions& options,
                                        const jit::Architecture& architecture,
                                        int multiprocessors) {
  if (hopper_forward::takes(problem, architecture))
    return hopper_forward::describe(problem, options, multiprocessors);
  if (hopper_backward::takes(problem, architecture))
    return hopper_backward::describe(problem, options);
  throw Unsupported("cuda:flash",
                    {concat("variants of ", problem.text(), " on ", architecture.text())});
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Flash>());
}

}  // namespace strobe::cuda::flash
