#include <array>
#include <memory>

#include "core/text.h"
#include "core/threads.h"
#include "reference/implementations.h"
#include "reference/oracle_row.h"
#include "reference/sequence.h"

namespace strobe::reference {
namespace {

// Stores dense `values` in the order of the view's indices, each rounded once to its dtype.
void store(const std::vector<double>& values, const TensorView& view) {
  std::array<std::int64_t, TensorView::kMaxRank> index = {};
  for (const double value : values) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < view.rank; ++axis) offset += index[axis] * view.strides[axis];
    store_element(view.data, offset, view.dtype, static_cast<float>(round_to(view.dtype, value)));
    for (int axis = view.rank - 1; axis >= 0 && ++index[axis] == view.shape[axis]; --axis) {
      index[axis] = 0;
    }
  }
}

class Oracle final : public Implementation {
 public:
  std::string_view name() const override { return "oracle"; }
  std::string_view summary() const override {
    return "float64 with plain loops: the truth that the others are held against";
  }
  Device::Kind device() const override { return Device::Kind::cpu; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    return floating_point_only(problem);
  }

 private:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const int threads = options.threads > 0 ? options.threads : default_threads();
    return {.problem = problem,
            .tuning = {{"algorithm", "plain loops"},
                       {"arithmetic", "float64"},
                       {"threads", concat(threads)}},
            .state = std::make_shared<const int>(threads)};
  }

  // Alone among the implementations it allocates as it runs: clarity comes first here.
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    const int threads = *static_cast<const int*>(plan.state.get());
    const OracleResult result = compute_oracle(plan.problem, tensors, threads);
    if (plan.problem.pass == Pass::forward) {
      store(result.out, tensors.out);
      if (tensors.lse.given()) store(result.lse, tensors.lse);
      return;
    }
    store(result.dq, tensors.dq);
    store(result.dk, tensors.dk);
    store(result.dv, tensors.dv);
    if (tensors.dbias.given()) store(result.dbias, tensors.dbias);
    if (tensors.dsinks.given()) store(result.dsinks, tensors.dsinks);
  }
};

}  // namespace

std::unique_ptr<Implementation> make_oracle() {
  return std::make_unique<Oracle>();
}

}  // namespace strobe::reference
