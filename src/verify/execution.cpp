#include "verify/execution.h"

namespace strobe::lab {
namespace {

Problem with_pass(Problem problem, Pass pass) {
  problem.pass = pass;
  return problem;
}

}  // namespace

Execution::Execution(const Implementation& implementation, const Operands& operands, Pass pass,
                     const PlanOptions& options)
    : implementation_(implementation),
      tensors_(operands.tensors(pass)),
      plan_(implementation.plan(with_pass(operands.problem(), pass), options)),
      workspace_(plan_.workspace_bytes) {}

}  // namespace strobe::lab
