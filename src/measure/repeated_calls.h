#pragma once

#include <memory>

#include "measure/sampler.h"
#include "strobe/implementation.h"
#include "verify/execution.h"
#include "verify/operands.h"

namespace strobe::lab {

/// One pass of a problem that is timed again and again, for as long as somebody watches. Caches
/// stay warm: calls are on the same operands.
class RepeatedCalls {
 public:
  /// Throws as planning does, and OutOfMemory.
  RepeatedCalls(const Implementation& implementation, const Problem& problem,
                const PlanOptions& options);

  struct Round {
    Measurement measurement{};
    DeviceState state{};  ///< of the device, or of the host
    double flops_per_second = 0;
  };

  /// Calls for about so many seconds, once at least. Throws what a call throws, and Rejected if it
  /// leaves an output unwritten.
  Round next(double seconds);

  const Plan& plan() const { return execution_->plan(); }

 private:
  Trial trial();

  Device device_;
  Operands operands_;
  std::unique_ptr<Execution> execution_;
};

}  // namespace strobe::lab
