#pragma once

#include <algorithm>
#include <cstdint>

#include "core/wide.h"
#include "strobe/tensor.h"

namespace strobe {

/// True if the view has no elements: nothing else of it need make sense.
inline bool is_empty(const TensorView& view) {
  return !view.given() || std::any_of(view.shape.begin(), view.shape.begin() + view.rank,
                                      [](auto n) { return n <= 0; });
}

/// Whether addresses of both are of the same memory: there is one for all CPUs.
inline bool share_memory(Device a, Device b) {
  return a.kind == b.kind && (a.kind == Device::Kind::cpu || a.index == b.index);
}

/// The bytes from the first that a view has to the last one's successor, as addresses.
struct Extent {
  Wide begin = 0;
  Wide end = 0;

  Extent() = default;
  explicit Extent(const TensorView& view) {
    if (is_empty(view)) return;
    begin = end = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(view.data));
    const auto size = static_cast<Wide>(size_of(view.dtype));
    for (int axis = 0; axis < view.rank; ++axis) {
      const Wide reach = Wide{view.strides[axis]} * (view.shape[axis] - 1) * size;
      (reach < 0 ? begin : end) += reach;
    }
    end += size;
  }

  bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

}  // namespace strobe
