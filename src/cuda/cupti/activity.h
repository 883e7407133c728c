#pragma once

#include <functional>

#include "strobe/device_profile.h"

namespace strobe::cuda::cupti {

/// What GPUs do while `work` runs: it must wait until they have done it. One at a time; a second
/// waits.
DeviceActivity observe(const std::function<void()>& work);

}  // namespace strobe::cuda::cupti
