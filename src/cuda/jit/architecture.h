#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace strobe::cuda::driver {
class Device;
}

namespace strobe::cuda::jit {

/// What kernels are compiled for.
struct Architecture {
  int major = 0;
  int minor = 0;
  bool specific = false;  ///< with the instructions that this architecture alone has: sm_90a

  /// "sm_90a"
  std::string text() const;

  /// As the compiler counts: 90
  int number() const { return 10 * major + minor; }

  auto operator<=>(const Architecture&) const = default;

  /// Throws InvalidArgument for what is not an architecture from sm_80 on.
  static Architecture parse(std::string_view text);

  /// That of a device, with its specific instructions where kernels use them. Throws Unsupported if
  /// it is older than sm_80.
  static Architecture of(const driver::Device& device);

  /// What a device lacks that is older than sm_80; empty for the others.
  static std::string missing(const driver::Device& device);
};

}  // namespace strobe::cuda::jit
