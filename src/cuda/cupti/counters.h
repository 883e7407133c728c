#pragma once

#include <functional>
#include <span>
#include <string>

#include "cuda/driver/device.h"
#include "strobe/device_profile.h"

namespace strobe::cuda::cupti {

/// What the GPU counts of each kernel of `call`, which waits until they are done. The call is
/// repeated until all is counted: it computes the same again, so nothing need be saved and put back
/// between passes, as a replay of single kernels would have to. Each kernel is a range by itself,
/// so that percentages do not have the host's time in them. `prepare` comes before the call in each
/// pass and waits as well; what it launches is not told of.
DeviceCounts count(const driver::Device& device, std::span<const std::string> metrics,
                   const std::function<void()>& prepare, const std::function<void()>& call);

}  // namespace strobe::cuda::cupti
