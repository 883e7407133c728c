#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "strobe/dtype.h"

namespace strobe::cpu {

/// Instructions besides the vector multiply-add that multiply numbers and add in fp32, or integers
/// in int32; also several of them in place of one. A roof must know them, whether a kernel uses
/// them or not.
struct MatrixUnit {
  std::string_view name;
  DType dtype;
  std::string_view isa;  ///< the kernels' instruction set that they go with
  bool (*runs_here)();
  /// Multiplies and adds with operands in registers; returns the operations done, two for each.
  double (*multiply_add_loop)(std::int64_t iterations);
};

/// Those this build knows for this architecture, fastest first for each dtype.
std::span<const MatrixUnit> matrix_units();

}  // namespace strobe::cpu
