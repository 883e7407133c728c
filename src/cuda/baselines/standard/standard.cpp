// The implementation "standard": unfused attention, to compare with.
#include <algorithm>
#include <limits>

#include "cuda/baselines/standard/unfused.h"
#include "cuda/planned_pass.h"
#include "strobe/registry.h"

namespace strobe::cuda::standard {
namespace {

class Standard final : public Implementation {
 public:
  std::string_view name() const override { return "standard"; }
  std::string_view summary() const override {
    return "unfused: products by cuBLAS, the scores in memory in the problem's dtype";
  }
  Device::Kind device() const override { return Device::Kind::cuda; }

  Support supports(const Problem& problem, const PlanOptions& options) const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    Support support{.missing = missing_for_kernels(options.device)};
    const auto refuse = [&support](bool is_so, const std::string& what) {
      if (is_so) support.missing.push_back(what);
    };
    // Without a GPU the library is not even loaded.
    if (support && !cublas::found().library) support.missing.push_back(cublas::found().missing);
    refuse(problem.dtype != DType::bf16 && problem.dtype != DType::fp16 &&
               problem.dtype != DType::fp32,
           concat("dtype ", name_of(problem.dtype)));
    refuse(problem.varlen(), "variable lengths");
    refuse(problem.keys() > kMost - 8 ||
               problem.seqlen_q > kMost / std::max<std::int64_t>(1, problem.heads) /
                                      std::max<std::int64_t>(1, problem.batch),
           "so many queries, keys and heads in one call");
    return support;
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const auto& device = driver::Device::at(options.device);
    const driver::ContextScope scope(device);
    return plan_of<Unfused>(device, problem, true, options.tf32);
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    run_pass<Unfused>(plan, tensors, workspace, stream);
  }
};

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  std::vector<jit::KernelDescription> all;
  const auto add = [&all](const RowFeatures& features) {
    all.push_back(softmax_description(features));
    all.push_back(gradients_description(features));
  };
  for (const bool long_rows : {false, true}) {
    add({.long_rows = long_rows});
    add({.window_right = true, .long_rows = long_rows});
    add({.dtype = DType::fp32, .window_left = true, .window_right = true, .long_rows = long_rows});
  }
  add({.dtype = DType::fp16,
       .softcap = true,
       .alibi = true,
       .bias = true,
       .sinks = true,
       .dropout = true,
       .long_rows = false});
  add({.dtype = DType::fp32,
       .softcap = true,
       .alibi = true,
       .bias = true,
       .sinks = true,
       .dropout = true});
  return all;
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Standard>());
}

}  // namespace strobe::cuda::standard
