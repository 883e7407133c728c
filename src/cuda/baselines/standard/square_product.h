#pragma once

#include "cuda/driver/device.h"
#include "strobe/product.h"

namespace strobe::cuda::standard {

/// By cuBLAS, on this stream. Throws Unsupported if there is none, or for a dtype that it has no
/// product of floating-point numbers for.
SquareProduct square_product(const driver::Device& device, std::int64_t size, DType dtype,
                             bool tf32, abi::Stream stream);

}  // namespace strobe::cuda::standard
