#pragma once

#include "strobe/implementation.h"
#include "verify/buffer.h"
#include "verify/operands.h"

namespace strobe::lab {

/// One pass of an implementation over a case's operands: planned, with its workspace, ready to
/// run any number of times.
class Execution {
 public:
  /// Throws Unsupported, or OutOfMemory if the workspace does not fit.
  Execution(const Implementation& implementation, const Operands& operands, Pass pass,
            const PlanOptions& options = {});

  /// The implementation's run and nothing else: what is timed.
  void run() { implementation_.run(plan_, tensors_, workspace_.data(), workspace_.size()); }

  void poison_workspace() { workspace_.poison(); }
  bool workspace_intact() const { return workspace_.guards_intact(); }

  const Plan& plan() const { return plan_; }

 private:
  const Implementation& implementation_;
  Tensors tensors_;
  Plan plan_;
  Buffer workspace_;
};

}  // namespace strobe::lab
