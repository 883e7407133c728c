#pragma once
// Read by the host's compiler as well.

namespace strobe::cuda {

/// Whether rows of so many columns of 16 bits, in panels of 64, better end in one of 16: where
/// three quarters of the last panel would be zeros, and shared memory is short of them.
constexpr bool ends_narrow(int columns) {
  return columns > 128 && columns <= 144;
}
constexpr int kNarrowColumns = 16;

}  // namespace strobe::cuda
