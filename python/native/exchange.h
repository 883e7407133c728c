#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

// DLPack from C: a library that has it (PyTorch since 2.10) describes an array in some 50 ns, where
// __dlpack__ and a capsule take several microseconds.
namespace strobe::python {

namespace nb = nanobind;

/// DLPackExchangeAPI of dlpack.h 1.2, as far as we use it.
struct Exchange {
  std::uint32_t major = 0, minor = 0;
  void* previous = nullptr;
  int (*allocate)() = nullptr;
  int (*managed_tensor_from_object)() = nullptr;
  int (*managed_tensor_to_object)() = nullptr;
  /// The description looks at memory of the object. -1 with Python's error set if it has none.
  int (*tensor_from_object)(void* object, nb::dlpack::dltensor* tensor) = nullptr;
};

/// That in a capsule; null for None, and for what is of another version.
inline const Exchange* exchange_in(nb::handle capsule) {
  if (capsule.is_none()) return nullptr;
  const auto* exchange =
      static_cast<const Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (exchange == nullptr) throw nb::python_error();
  return exchange->major == 1 ? exchange : nullptr;
}

}  // namespace strobe::python
