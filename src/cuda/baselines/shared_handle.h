#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "cuda/driver/device.h"

namespace strobe::cuda {

/// A library's handle on a device. It serves one caller at a time, who holds `busy`.
template <class Handle>
struct SharedHandle {
  Handle handle{};
  std::mutex busy{};
};

/// The one of a device, whose context must be current, made by `create` when first asked for. There
/// is one kind of handle for each library.
template <class Handle, class Create>
SharedHandle<Handle>& shared_handle(const driver::Device& device, const Create& create) {
  static std::mutex guard;
  // Never destroyed: at the end of the process the driver may be gone before it.
  static auto& all = *new std::map<int, std::unique_ptr<SharedHandle<Handle>>>;
  const std::lock_guard lock(guard);
  auto& one = all[device.index()];
  if (!one) {
    auto made = std::make_unique<SharedHandle<Handle>>();
    create(&made->handle);
    one = std::move(made);
  }
  return *one;
}

}  // namespace strobe::cuda
