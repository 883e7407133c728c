#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "strobe/dtype.h"
#include "strobe/export.h"

namespace strobe {

/// How a device's own library multiplies square matrices of one size: what attention, whose work is
/// mostly products, is held against.
struct SquareProduct {
  std::string library{};    ///< "cuBLAS 13.1"
  DType out = DType::fp32;  ///< what its elements are stored as
  /// out = left · right, row after row without gaps. On a GPU it is put on the stream of the
  /// accelerator, on the CPU it is done on return.
  std::function<void(const void* left, const void* right, void* out)> multiply{};
};

/// That of the CPU, by oneDNN or OpenBLAS on so many threads, or as many as is usual for 0. Throws
/// Unsupported if there is no library, or none for this dtype.
STROBE_API SquareProduct cpu_square_product(std::int64_t size, DType dtype, int threads = 0);

}  // namespace strobe
