#pragma once

#include <span>
#include <string_view>

#include "cpu/head_task.h"

namespace strobe::cpu {

/// An instruction set this build has kernels for.
struct Isa {
  const IsaKernels* kernels;
  bool (*runs_here)();
};

/// All of them for this architecture, best first.
std::span<const Isa> isas();

/// The kernels to use: the best that this machine runs, or the one STROBE_CPU_ISA names. Throws
/// InvalidArgument if it names none, Unsupported if this machine lacks it.
const IsaKernels& active_isa();

}  // namespace strobe::cpu
