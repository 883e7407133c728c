#pragma once

#include <cstdint>

// What happens to one row of scores between the products. Plain data, no inline functions: the code
// behind it is compiled once for each instruction set.
namespace strobe::reference::gemm {

struct RowKernels {
  /// values[0..count) *= factor. Returns the largest that is not NaN, -inf if there is none.
  float (*scale)(float* values, std::int64_t count, float factor);

  /// values = exp(values - base), for values that are not above it. Returns their sum.
  float (*exponentials)(float* values, std::int64_t count, float base);

  /// Σ weights · values, where a weight of 0 hides what the value is.
  float (*dot)(const float* weights, const float* values, std::int64_t count);

  /// values = weights · (values - mean), and 0 where the weight is 0.
  void (*centre)(const float* weights, float mean, float* values, std::int64_t count);

  /// Rounds to bf16.
  void (*narrow)(const float* values, std::int64_t count, std::uint16_t* narrowed);
};

/// For this CPU.
const RowKernels& row_kernels();

}  // namespace strobe::reference::gemm
