// The smallest honest kernel: flash attention's online softmax, one row at a time, one number at
// a time. CONTRIBUTING.md walks through it.
#include "online_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

namespace strobe::online_softmax {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

const float* row(const TensorView& view, std::int64_t batch, std::int64_t position,
                 std::int64_t head) {
  return static_cast<const float*>(view.data) + batch * view.strides[0] +
         position * view.strides[1] + head * view.strides[2];
}

/// The weighted mean of the values so far, the weights being exp(logit): `largest` keeps the
/// exponentials in range, and what was summed under a smaller one is scaled down when it grows.
/// In double, because a long row summed in order loses digits in float.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(std::int64_t dim) : dim_(dim) {}

  void add(double logit, const float* value) {
    if (logit == kMinusInfinity) return;  // weighs nothing, and −∞ − (−∞) is not a number
    const double larger = std::max(largest_, logit);
    const double keep = std::exp(largest_ - larger);
    const double weight = std::exp(logit - larger);
    largest_ = larger;
    weights_ = weights_ * keep + weight;
    for (std::int64_t i = 0; i < dim_; ++i) values_[i] = values_[i] * keep + weight * value[i];
  }

  bool empty() const { return largest_ == kMinusInfinity; }

  void write(float* out) const {
    for (std::int64_t i = 0; i < dim_; ++i) {
      out[i] = empty() ? 0.0F : static_cast<float>(values_[i] / weights_);
    }
  }

  double log_sum_exp() const { return empty() ? kMinusInfinity : largest_ + std::log(weights_); }

 private:
  std::int64_t dim_;
  double largest_ = kMinusInfinity;
  double weights_ = 0;
  std::array<double, 512> values_ = {};  // the largest dim a problem may have
};

class Kernel final : public Implementation {
 public:
  std::string_view name() const override { return "online-softmax"; }
  std::string_view summary() const override { return "online softmax row by row, an example"; }
  Device::Kind device() const override { return Device::Kind::cpu; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    Support support;
    const auto need = [&](bool has, const char* feature) {
      if (!has) support.missing.emplace_back(feature);
    };
    need(problem.pass == Pass::forward, "backward");
    need(problem.dtype == DType::fp32, "dtypes other than fp32");
    need(!problem.varlen(), "variable length");
    need(problem.softcap == 0, "softcap");
    need(!problem.alibi, "alibi");
    need(!problem.sinks, "sinks");
    need(!problem.bias, "bias");
    need(problem.dropout == 0, "dropout");
    return support;
  }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem, .tuning = {{"rows", "1"}, {"threads", "1"}}};
  }

  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    const Problem& problem = plan.problem;
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
      for (std::int64_t head = 0; head < problem.heads; ++head) {
        for (std::int64_t query = 0; query < problem.seqlen_q; ++query) {
          attend(problem, tensors, batch, head, query);
        }
      }
    }
  }

 private:
  static void attend(const Problem& problem, const Tensors& tensors, std::int64_t batch,
                     std::int64_t head, std::int64_t query) {
    const std::int64_t key_head = head / problem.group();
    const float* q = row(tensors.q, batch, query, head);
    OnlineSoftmax softmax(problem.value_dim());
    const KeyRange keys = problem.visible(query, problem.seqlen_q, problem.keys());
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      const float* k = row(tensors.k, batch, key, key_head);
      double dot = 0;
      for (std::int64_t i = 0; i < problem.dim; ++i) dot += double{q[i]} * k[i];
      softmax.add(problem.softmax_scale() * dot, row(tensors.v, batch, key, key_head));
    }
    softmax.write(const_cast<float*>(row(tensors.out, batch, query, head)));
    if (tensors.lse.given()) {
      const auto& lse = tensors.lse;
      static_cast<float*>(
          lse.data)[batch * lse.strides[0] + head * lse.strides[1] + query * lse.strides[2]] =
          static_cast<float>(softmax.log_sum_exp());
    }
  }
};

}  // namespace

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Kernel>());
}

}  // namespace strobe::online_softmax
