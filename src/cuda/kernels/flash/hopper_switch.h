#pragma once

namespace strobe::cuda::flash {

/// Whether kernels for Hopper are to be used. They are under development: STROBE_HOPPER=1 turns
/// them on.
bool hopper_is_on();

}  // namespace strobe::cuda::flash
