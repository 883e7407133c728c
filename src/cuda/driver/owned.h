#pragma once

#include <utility>

#include "cuda/driver/device.h"
#include "cuda/driver/driver.h"

namespace strobe::cuda::driver {

/// A handle of the driver's that is given back, by `release`, in the context it was made in. What
/// the driver says to that is ignored: at the end of a process it may be gone already.
template <class Handle, void (*release)(const Api&, Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const Device& device, Handle handle) : device_(&device), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ == Handle{}) return;
    const Api& driver = api();
    if (driver.cuCtxPushCurrent.unchecked(device_->primary_context()) != abi::Result::success) {
      return;
    }
    release(driver, handle_);
    abi::Context popped = nullptr;
    driver.cuCtxPopCurrent.unchecked(&popped);
  }

  Handle get() const { return handle_; }
  const Device& device() const { return *device_; }

 private:
  const Device* device_ = nullptr;
  Handle handle_{};
};

}  // namespace strobe::cuda::driver
