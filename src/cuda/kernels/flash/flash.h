#pragma once

#include <string>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "strobe/implementation.h"

namespace strobe::cuda::flash {

/// Ways to cut the problem on such a GPU, the usual one first, whether there is one here or not.
std::vector<std::string> variants(const Problem& problem, const PlanOptions& options,
                                  const jit::Architecture& architecture, int multiprocessors);

/// The kernel of one of them, the one that the options name. Throws Unsupported where there are
/// none, and InvalidArgument for another name.
jit::KernelDescription describe_variant(const Problem& problem, const PlanOptions& options,
                                        const jit::Architecture& architecture, int multiprocessors);

}  // namespace strobe::cuda::flash
