#include "cuda/driver/tensor_map.h"

#include "cuda/driver/driver.h"

namespace strobe::cuda::driver {
namespace {

/// Asked of the driver rather than of the library, which may export it and not have it.
abi::EncodeTiled* find_encode() {
  void* function = nullptr;
  int status = 0;
  constexpr int kVersion = 12000;
  const abi::Result result =
      api().cuGetProcAddress.unchecked("cuTensorMapEncodeTiled", &function, kVersion, 0, &status);
  return result == abi::Result::success ? reinterpret_cast<abi::EncodeTiled*>(function) : nullptr;
}

abi::EncodeTiled* encode_function() {
  static abi::EncodeTiled* const function = find_encode();
  return function;
}

}  // namespace

bool can_encode_tensor_maps() {
  return encode_function() != nullptr;
}

abi::TensorMap encode(const TiledTensor& tensor) {
  if (!can_encode_tensor_maps()) {
    throw Unsupported("the CUDA backend", {"a driver with cuTensorMapEncodeTiled"});
  }
  constexpr std::array<std::uint32_t, TiledTensor::kMaxRank> kDense{1, 1, 1, 1, 1};
  abi::TensorMap map{};
  const abi::Result result = encode_function()(
      &map, tensor.type, static_cast<std::uint32_t>(tensor.rank), const_cast<void*>(tensor.data),
      tensor.sizes.data(), tensor.strides.data(), tensor.box.data(), kDense.data(),
      abi::TensorMapInterleave::none, tensor.swizzle, tensor.promotion, abi::TensorMapFill::zeros);
  if (result != abi::Result::success) fail("cuTensorMapEncodeTiled", result);
  return map;
}

}  // namespace strobe::cuda::driver
