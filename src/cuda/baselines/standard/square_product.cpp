#include "cuda/baselines/standard/square_product.h"

#include <memory>

#include "core/text.h"
#include "cuda/baselines/standard/products.h"
#include "cuda/driver/memory.h"
#include "strobe/error.h"

namespace strobe::cuda::standard {
namespace {

/// Matrices are not written through it but for the last one.
Matrices square(const void* data, std::int64_t size) {
  return {const_cast<void*>(data), size, size, size};
}

}  // namespace

SquareProduct square_product(const driver::Device& device, std::int64_t size, DType dtype,
                             bool tf32, abi::Stream stream) {
  const std::string library = concat("cuBLAS ", cublas::library().version());
  if (dtype != DType::fp32 && dtype != DType::fp16 && dtype != DType::bf16) {
    throw Unsupported(
        library, {concat("products of ", name_of(dtype), " (has those of fp32, fp16 and bf16)")});
  }
  const driver::ContextScope scope(device);
  auto products = std::make_shared<const Products>(device, dtype, tf32);
  auto workspace = std::make_shared<const driver::DeviceMemory>(
      device, static_cast<std::size_t>(Products::kWorkspaceBytes));
  const auto multiply = [&device, products, workspace, size, stream](const void* left,
                                                                     const void* right, void* out) {
    const driver::ContextScope here(device);
    const Products::Session session(*products, workspace->data(), stream);
    session.multiply(square(left, size), square(right, size), square(out, size), 1, 1);
  };
  return {.library = library, .out = dtype, .multiply = multiply};
}

}  // namespace strobe::cuda::standard
