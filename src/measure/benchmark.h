#pragma once

#include <cstddef>
#include <string>

#include "measure/flops.h"
#include "measure/sampler.h"
#include "strobe/implementation.h"
#include "verify/operands.h"
#include "verify/spot_check.h"
#include "verify/verify.h"

namespace strobe::lab {

/// One implementation timed on one pass of one problem.
struct Benchmark {
  std::string implementation{};
  Device::Kind device = Device::Kind::cpu;
  Problem problem{};  ///< with the pass that was timed
  Status status = Status::ok;
  std::string reason{};  ///< why it is not ok
  TuningRecord tuning{};
  Measurement measurement{};
  double flops = 0;
  Footprint operands{};
  std::size_t workspace_bytes = 0;
  Accuracy accuracy{};

  double flops_per_second(double ms) const { return ms > 0 ? flops / ms * 1e3 : 0; }
  std::size_t total_bytes() const {
    return static_cast<std::size_t>(operands.inputs + operands.outputs) + workspace_bytes;
  }
};

/// Times the pass (for backward after a forward pass of its own, which is not timed) and checks
/// what it computed. A run that leaves an output unwritten, a missing feature or too little memory
/// are results with a status, not exceptions.
Benchmark benchmark(const Implementation& implementation, Operands& operands, Pass pass,
                    const SpotCheck& check, const PlanOptions& options,
                    const SamplingPolicy& policy);

}  // namespace strobe::lab
