#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "measure/sampler.h"
#include "strobe/implementation.h"
#include "strobe/product.h"

namespace strobe::lab {

/// What a product of two square matrices reached.
struct ProductResult {
  std::int64_t size = 0;  ///< rows of each
  std::string library{};
  Statistics ms{};

  double flops() const {
    const auto rows = static_cast<double>(size);
    return 2 * rows * rows * rows;
  }
  double flops_per_second(double milliseconds) const {
    return milliseconds > 0 ? flops() / milliseconds * 1e3 : 0;
  }
};

/// Two matrices of normal numbers, for zeros draw less power, and their product by the library of a
/// device: to be timed in turns with attention, which then finds the same machine.
class ProductTrial {
 public:
  /// Multiplies once. Throws Unsupported if the device has no library for it, OutOfMemory, and
  /// Rejected if the product is wrong.
  ProductTrial(Device device, std::int64_t size, DType dtype, const PlanOptions& options);

  DType dtype() const { return dtype_; }
  Trial trial(const SamplingPolicy& policy) const;
  ProductResult result(const Measurement& measurement) const;

 private:
  using Memory = std::shared_ptr<std::byte>;

  std::size_t bytes(DType dtype) const;
  Memory take(std::size_t bytes) const;
  Memory on_device(const Memory& host) const;
  float element(std::int64_t index) const;
  void require_product(const std::byte* left, const std::byte* right) const;
  void multiply() const { product_.multiply(left_.get(), right_.get(), out_.get()); }

  Device device_;
  std::int64_t size_;
  DType dtype_;
  SquareProduct product_;
  Memory left_{}, right_{}, out_{};
};

}  // namespace strobe::lab
