#include "measure/product_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>

#include "strobe/accelerator.h"
#include "verify/buffer.h"
#include "verify/random.h"

namespace strobe::lab {
namespace {

bool on_cpu(Device device) {
  return device.kind == Device::Kind::cpu;
}

SquareProduct product_of(Device device, std::int64_t size, DType dtype,
                         const PlanOptions& options) {
  return on_cpu(device) ? cpu_square_product(size, dtype, options.threads)
                        : accelerator(device).square_product(size, dtype, options.tf32);
}

std::shared_ptr<std::byte> host_memory(std::size_t bytes) {
  const auto buffer = std::make_shared<Buffer>(bytes);
  return {buffer, buffer->data()};
}

}  // namespace

ProductTrial::ProductTrial(Device device, std::int64_t size, DType dtype,
                           const PlanOptions& options)
    : device_(device),
      size_(size),
      dtype_(dtype),
      product_(product_of(device, size, dtype, options)) {
  constexpr std::uint64_t kSeed = 1;
  std::array<Memory, 2> factors;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = host_memory(bytes(dtype_));
    fill(TensorView::contiguous(factors[i].get(), dtype_, {size_, size_}),
         RandomStream(kSeed, static_cast<std::uint32_t>(i)),
         [](RandomStream& stream, std::uint64_t index) { return stream.normal(index); });
  }
  left_ = on_device(factors[0]);
  right_ = on_device(factors[1]);
  out_ = take(bytes(product_.out));
  multiply();
  require_product(factors[0].get(), factors[1].get());
}

std::size_t ProductTrial::bytes(DType dtype) const {
  return static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_) * size_of(dtype);
}

/// Poisoned, so that a product that is not there shows.
ProductTrial::Memory ProductTrial::take(std::size_t bytes) const {
  if (on_cpu(device_)) return host_memory(bytes);
  const Accelerator& gpu = accelerator(device_);
  Memory memory = gpu.allocate(bytes);
  gpu.fill(memory.get(), kPoison, bytes);
  return memory;
}

ProductTrial::Memory ProductTrial::on_device(const Memory& host) const {
  if (on_cpu(device_)) return host;
  const Accelerator& gpu = accelerator(device_);
  Memory memory = gpu.allocate(bytes(dtype_));
  gpu.upload(memory.get(), host.get(), bytes(dtype_));
  gpu.wait();
  return memory;
}

float ProductTrial::element(std::int64_t index) const {
  const std::size_t each = size_of(product_.out);
  const std::byte* place = out_.get() + static_cast<std::size_t>(index) * each;
  std::array<std::byte, sizeof(float)> value{};
  if (on_cpu(device_)) {
    std::memcpy(value.data(), place, each);
  } else {
    accelerator(device_).download(value.data(), place, each);
  }
  return load_element(value.data(), 0, product_.out);
}

/// Looks at some elements, which are about √size apart from each other: this is no test of their
/// last places.
void ProductTrial::require_product(const std::byte* left, const std::byte* right) const {
  constexpr std::int64_t kLooked = 64;
  const double spread = std::sqrt(static_cast<double>(size_));
  for (std::int64_t i = 0; i < std::min(kLooked, size_); ++i) {
    const std::int64_t row = size_ - 1 - i * size_ / kLooked, column = i * 7919 % size_;
    double wanted = 0;
    for (std::int64_t k = 0; k < size_; ++k) {
      wanted += double{load_element(left, row * size_ + k, dtype_)} *
                load_element(right, k * size_ + column, dtype_);
    }
    const float got = element(row * size_ + column);
    const double allowed = spread / 16 + std::fabs(wanted) / 64;
    if (std::fabs(got - wanted) <= allowed) continue;  // not so for NaN
    throw Rejected(fmt::format(
        "the product by {} is wrong, so its time means nothing: {} instead of {} in row {}, "
        "column {}",
        product_.library, got, wanted, row, column));
  }
}

Trial ProductTrial::trial(const SamplingPolicy& policy) const {
  return {.prepare = [] {},
          .run = [this] { multiply(); },
          .check = [] {},
          .stopwatch = policy.stopwatch ? policy.stopwatch : &stopwatch_of(device_),
          .cache = policy.cache_on(device_.kind)};
}

ProductResult ProductTrial::result(const Measurement& measurement) const {
  if (measurement.failure) std::rethrow_exception(measurement.failure);
  return {.size = size_, .library = product_.library, .ms = measurement.ms};
}

}  // namespace strobe::lab
