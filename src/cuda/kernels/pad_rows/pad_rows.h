#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/driver/module.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/jit/loaded_kernel.h"
#include "strobe/tensor.h"

// For operands that fast kernels cannot take as they lie: rows that start anywhere, dims that are
// no multiple of 16 bytes.
namespace strobe::cuda::pad_rows {

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// Copies between a tensor [batch, rows, heads, dim], or [rows, heads, dim], of any strides and a
/// dense one, aligned to 16 bytes, whose dim is `padded_dim`. Elements have 2 or 4 bytes.
class RowPadder {
 public:
  /// Compiles, or loads, the kernels.
  explicit RowPadder(const driver::Device& device);

  /// Into the dense tensor, with zeros in the padding. Ordered on the stream, whose context must be
  /// current.
  void pad(const TensorView& from, void* dense, std::int64_t padded_dim, abi::Stream stream) const;

  /// Out of it, without the padding.
  void cut(const void* dense, std::int64_t padded_dim, const TensorView& to,
           abi::Stream stream) const;

 private:
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  driver::Function pad_;
  driver::Function cut_;
  unsigned max_blocks_;
};

}  // namespace strobe::cuda::pad_rows
