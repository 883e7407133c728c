#include "cuda/driver/device.h"

#include <deque>

#include "core/text.h"
#include "cuda/driver/driver.h"

namespace strobe::cuda::driver {
namespace {

const std::deque<Device>& devices() {
  // Never destroyed: what is freed at the end of the process still refers to them.
  static const auto* const all = [] {
    int count = 0;
    api().cuDeviceGetCount(&count);
    auto* list = new std::deque<Device>;
    for (int index = 0; index < count; ++index) list->emplace_back(index);
    return list;
  }();
  return *all;
}

}  // namespace

int Device::count() {
  return static_cast<int>(devices().size());
}

const Device& Device::at(int index) {
  if (index < 0 || index >= count()) {
    throw InvalidArgument("device",
                          concat("is cuda:", index, ", allowed is cuda:0 to cuda:", count() - 1));
  }
  return devices()[static_cast<std::size_t>(index)];
}

const Device& Device::current() {
  abi::Context context = nullptr;
  api().cuCtxGetCurrent(&context);
  if (context == nullptr) return at(0);
  abi::DeviceId id = 0;
  api().cuCtxGetDevice(&id);
  for (const Device& device : devices()) {
    if (device.id_ == id) return device;
  }
  return at(0);
}

Device::Device(int index) : index_(index) {
  api().cuDeviceGet(&id_, index);
  char name[256] = {};
  api().cuDeviceGetName(name, sizeof name, id_);
  name_ = name;
  std::size_t bytes = 0;
  api().cuDeviceTotalMem(&bytes, id_);
  memory_bytes_ = static_cast<std::int64_t>(bytes);
  using Attribute = abi::DeviceAttribute;
  capability_major_ = attribute(Attribute::compute_capability_major);
  capability_minor_ = attribute(Attribute::compute_capability_minor);
  multiprocessors_ = attribute(Attribute::multiprocessor_count);
  l2_bytes_ = attribute(Attribute::l2_cache_size);
  shared_bytes_per_block_ = attribute(Attribute::max_shared_memory_per_block_optin);
}

int Device::attribute(abi::DeviceAttribute which) const {
  int value = 0;
  api().cuDeviceGetAttribute(&value, which, id_);
  return value;
}

std::string Device::pci_bus_id() const {
  char id[32] = {};
  api().cuDeviceGetPCIBusId(id, sizeof id, id_);
  return id;
}

abi::Context Device::primary_context() const {
  std::call_once(retained_, [this] { api().cuDevicePrimaryCtxRetain(&context_, id_); });
  return context_;
}

ContextScope::ContextScope(const Device& device) {
  api().cuCtxPushCurrent(device.primary_context());
}

ContextScope::~ContextScope() {
  abi::Context popped = nullptr;
  api().cuCtxPopCurrent.unchecked(&popped);
}

}  // namespace strobe::cuda::driver
