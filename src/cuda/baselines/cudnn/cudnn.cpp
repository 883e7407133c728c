// The implementation "cudnn": NVIDIA's fused attention, as an opponent.
#include <limits>

#include "cuda/baselines/cudnn/attention.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/planned_pass.h"
#include "strobe/registry.h"

namespace strobe::cuda::cudnn {
namespace {

/// The last version that computes gradients of some lengths wrongly.
constexpr std::size_t kWrongGradients = 91500;

class Cudnn final : public Implementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  std::string_view summary() const override {
    return "cuDNN's fused attention, 16-bit types, plain or causal";
  }
  Device::Kind device() const override { return Device::Kind::cuda; }

  Support supports(const Problem& problem, const PlanOptions& options) const override {
    Support support{.missing = missing_for_kernels(options.device)};
    std::size_t version = kWrongGradients + 1;
    if (support) {  // without a GPU the library is not even loaded
      if (found().library) {
        version = library().version();
      } else {
        support.missing.push_back(found().missing);
      }
    }
    for (auto& one : missing(problem, version)) support.missing.push_back(std::move(one));
    return support;
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const auto& device = driver::Device::at(options.device);
    const driver::ContextScope scope(device);
    const bool same_bits = problem.pass == Pass::forward || options.deterministic;
    return plan_of<Attention>(device, problem, same_bits, options.deterministic);
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    run_pass<Attention>(plan, tensors, workspace, stream);
  }
};

}  // namespace

std::vector<std::string> missing(const Problem& problem, std::size_t version) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<std::string> list;
  const auto refuse = [&list](bool is_so, std::string what) {
    if (is_so) list.push_back(std::move(what));
  };
  const bool backward = problem.pass == Pass::backward;
  const std::int64_t queries = problem.seqlen_q, keys = problem.keys();
  const std::int64_t dim = problem.dim, dim_v = problem.value_dim();
  refuse(problem.dtype != DType::bf16 && problem.dtype != DType::fp16,
         concat("dtype ", name_of(problem.dtype)));
  refuse(problem.varlen(), "variable lengths");
  refuse(problem.effective_window() != Window{} && !is_causal(problem), "a window");
  refuse(is_causal(problem) && queries > keys, "a causal mask with more queries than keys");
  refuse(problem.softcap > 0, "softcap");
  refuse(problem.alibi, "ALiBi");
  refuse(problem.sinks, "sinks");
  refuse(problem.bias.has_value(), "a bias");
  refuse(problem.dropout > 0, "dropout");
  refuse(problem.softmax_scale() <= 0, "a scale that is not positive");
  refuse(dim % 8 != 0 || dim_v % 8 != 0, "head dims that are no multiple of 8");
  refuse(dim > 256 || dim_v > 256, "head dims above 256");
  refuse(problem.batch == 0 || queries == 0 || keys == 0, "tensors without elements");
  refuse(queries > kMost || keys > kMost, "sequences of more than 2^31 - 1 rows");
  refuse(backward && queries == 1 && keys == 1, "the backward pass of one query and one key");
  refuse(backward && version <= kWrongGradients && keys % 128 != 0,
         "the backward pass of a number of keys that is no multiple of 128, before cuDNN 9.15.1");
  return list;
}

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {};
}

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Cudnn>());
}

}  // namespace strobe::cuda::cudnn
