#pragma once

#include <array>
#include <cstdint>

#include "cuda/driver/abi.h"

namespace strobe::cuda::driver {

/// A tensor in device memory and the box of it that is copied at a time. The innermost axis comes
/// first and is dense.
struct TiledTensor {
  static constexpr int kMaxRank = 5;

  abi::TensorMapType type = abi::TensorMapType::bfloat16;
  const void* data = nullptr;  ///< aligned to 16 bytes
  int rank = 0;
  std::array<std::uint64_t, kMaxRank> sizes{};        ///< in elements
  std::array<std::uint64_t, kMaxRank - 1> strides{};  ///< in bytes, of all axes but the innermost
  std::array<std::uint32_t, kMaxRank> box{};          ///< in elements
  abi::TensorMapSwizzle swizzle = abi::TensorMapSwizzle::none;
  abi::TensorMapPromotion promotion = abi::TensorMapPromotion::bytes256;
};

/// Whether this driver can describe tensors to the copy unit; whether the device has one (from
/// compute capability 9.0) is another question.
bool can_encode_tensor_maps();

/// What lies outside of the tensor is read as zero. A context of the device must be current. Throws
/// Unsupported if the driver cannot, and CudaError if the tensor breaks the unit's rules.
abi::TensorMap encode(const TiledTensor& tensor);

}  // namespace strobe::cuda::driver
