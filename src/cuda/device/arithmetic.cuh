#pragma once

namespace strobe::cuda {

/// What the operands are and how they are multiplied. Sums are fp32 always.
enum class Arithmetic {
  bf16,
  fp16,
  tf32,  ///< fp32 operands, rounded to TF32 for the products
  fp32,  ///< fp32 operands, products as good as those of fp32: five TF32 products for each
};

}  // namespace strobe::cuda
