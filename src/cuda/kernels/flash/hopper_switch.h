#pragma once

namespace strobe::cuda::flash {

/// Whether kernels for Hopper are to be used where they can: unless STROBE_HOPPER=0 says that the
/// portable ones are wanted, to compare the two.
bool hopper_is_on();

}  // namespace strobe::cuda::flash
