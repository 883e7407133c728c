#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "strobe/dtype.h"

namespace strobe::cpu {

/// Instructions that multiply 16-bit operands and add in fp32 faster than the vector units multiply
/// fp32. A roof for such a dtype must know them, whether a kernel uses them or not.
struct MatrixUnit {
  std::string_view name;
  DType dtype;
  bool (*runs_here)();
  /// Multiplies and adds with operands in registers; returns the floating-point operations done.
  double (*multiply_add_loop)(std::int64_t iterations);
};

/// Those this build knows for this architecture, fastest first.
std::span<const MatrixUnit> matrix_units();

}  // namespace strobe::cpu
