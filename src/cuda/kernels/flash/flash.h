#pragma once

#include <string>
#include <vector>

#include "cuda/jit/architecture.h"
#include "strobe/implementation.h"

namespace strobe::cuda::flash {

/// Ways to cut the problem on such a GPU, the usual one first, whether there is one here or not.
std::vector<std::string> variants(const Problem& problem, const PlanOptions& options,
                                  const jit::Architecture& architecture, int multiprocessors);

}  // namespace strobe::cuda::flash
