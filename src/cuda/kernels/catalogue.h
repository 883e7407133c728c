#pragma once

#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "strobe/registry.h"

// Generated from the strobe_cuda_kernel() lines of src/cuda/{kernels,baselines}/CMakeLists.txt.
namespace strobe::cuda {

/// The configurations that every kernel wants compiled ahead, and tested, for an architecture.
std::vector<jit::KernelDescription> kernel_configurations(const jit::Architecture& architecture);

/// Adds the implementations of the kernels that are some, in order of preference.
void register_kernels(Registry& registry);

}  // namespace strobe::cuda
