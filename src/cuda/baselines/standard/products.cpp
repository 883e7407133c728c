#include "cuda/baselines/standard/products.h"

#include "cuda/baselines/shared_handle.h"
#include "cuda/driver/memory.h"

namespace strobe::cuda::standard {
namespace {

using cublas::abi::ComputeType;
using cublas::abi::DataType;
using cublas::abi::Operation;

DataType type_of(DType dtype) {
  if (dtype == DType::bf16) return DataType::bf16;
  return dtype == DType::fp16 ? DataType::fp16 : DataType::fp32;
}

SharedHandle<cublas::abi::Handle>& handle_of(const driver::Device& device) {
  return shared_handle<cublas::abi::Handle>(device, [](cublas::abi::Handle* handle) {
    cublas::library().cublasCreate(handle);
    cublas::library().cublasSetMathMode(*handle, cublas::abi::MathMode::whole_sums);
  });
}

/// cuBLAS counts columns first, so that what lies in rows is transposed to it.
Operation operation_of(const Matrices& matrices) {
  return matrices.is_transposed ? Operation::transpose : Operation::none;
}

}  // namespace

Products::Products(const driver::Device& device, DType dtype, bool tf32)
    : device_(device),
      type_(type_of(dtype)),
      element_bytes_(static_cast<std::int64_t>(size_of(dtype))),
      compute_(dtype == DType::fp32 && tf32 ? ComputeType::tf32 : ComputeType::fp32) {
  handle_of(device);  // made now, and not by the first call
}

Products::Session::Session(const Products& products, void* workspace, abi::Stream stream)
    : products_(products),
      handle_(handle_of(products.device_).handle),
      lock_(handle_of(products.device_).busy),
      stream_(stream) {
  const cublas::Library& library = cublas::library();
  library.cublasSetStream(handle_, stream);
  // After the stream: that takes a workspace of the library's own.
  library.cublasSetWorkspace(handle_, workspace, static_cast<std::size_t>(kWorkspaceBytes));
}

void Products::Session::multiply(const Matrices& a, const Matrices& b, const Matrices& to,
                                 float factor, std::int64_t count) const {
  if (to.rows == 0 || to.columns == 0 || count == 0) return;
  if (a.columns == 0) {
    const auto bytes = count * to.distance() * products_.element_bytes_;
    driver::fill_async(to.data, 0, static_cast<std::size_t>(bytes), stream_);
    return;
  }
  const float zero = 0;
  const auto type = products_.type_;
  const auto whole = [](std::int64_t size) { return static_cast<int>(size); };
  // What lies in rows is toᵀ = bᵀ aᵀ to cuBLAS.
  cublas::library().cublasGemmStridedBatchedEx(
      handle_, operation_of(b), operation_of(a), whole(to.columns), whole(to.rows),
      whole(a.columns), &factor, b.data, type, whole(b.pitch), b.distance(), a.data, type,
      whole(a.pitch), a.distance(), &zero, to.data, type, whole(to.pitch), to.distance(),
      whole(count), products_.compute_, cublas::abi::Algorithm::standard);
}

}  // namespace strobe::cuda::standard
