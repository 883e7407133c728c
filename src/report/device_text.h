#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "strobe/device_profile.h"

namespace strobe::lab {

/// "132x1x1"
inline std::string extent_text(const std::array<int, 3>& extent) {
  return fmt::format("{}x{}x{}", extent[0], extent[1], extent[2]);
}

inline std::string_view category_of(const DeviceWork& work) {
  switch (work.kind) {
    case DeviceWork::Kind::kernel:
      return "kernel";
    case DeviceWork::Kind::copy:
      return "copy";
    case DeviceWork::Kind::fill:
      break;
  }
  return "fill";
}

}  // namespace strobe::lab
