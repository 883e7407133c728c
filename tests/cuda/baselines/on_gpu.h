#pragma once

#include "cuda/gpu.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "verify/verify.h"

namespace strobe::cuda::test {

/// Tests of an implementation of libstrobe_cuda on a GPU.
class BaselineOnGpu : public OnGpuWithCompiler {
 protected:
  /// Skips where the implementation cannot do even this.
  void skip_unless_supported(const char* name, const char* problem) {
    if (IsSkipped()) return;
    implementation_ = &find(name);
    const Support support = implementation_->supports(Problem::parse(problem));
    if (!support) GTEST_SKIP() << support.missing.front();
  }

  /// Against the oracle, by the laboratory's rule.
  void expect_ok(const char* problem, const lab::Inputs& inputs = {},
                 const PlanOptions& options = {}) const {
    const lab::Report report = verify(problem, inputs, options);
    EXPECT_EQ(report.status, lab::Status::ok) << problem << ": " << report.reason;
  }

  /// The same for those whose LSE is as inexact as scores of 16 bits make it.
  void expect_ok_but_for_lse(const char* problem, const lab::Inputs& inputs = {}) const {
    const lab::Report report = verify(problem, inputs, {});
    EXPECT_FALSE(report.tensors.empty()) << problem << ": " << report.reason;
    for (const lab::TensorReport& tensor : report.tensors) {
      if (tensor.tensor == "lse") continue;
      EXPECT_TRUE(tensor.comparison.pass())
          << problem << ": " << tensor.tensor << " " << tensor.comparison.reason;
    }
  }

 private:
  lab::Report verify(const char* problem, const lab::Inputs& inputs,
                     const PlanOptions& options) const {
    const lab::Case what{Problem::parse(problem), inputs};
    return lab::verify(what, std::span(&implementation_, 1), options).front();
  }

  static const Implementation& find(const char* name) {
    static const strobe::test::ScopedVariable here("STROBE_CUDA_LIBRARY", STROBE_BACKEND);
    return Registry::instance().find(name);
  }

  const Implementation* implementation_ = nullptr;
};

}  // namespace strobe::cuda::test
