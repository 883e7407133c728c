#pragma once

#include <functional>

#include "strobe/device_profile.h"

namespace strobe::cuda::cupti {

/// What the GPU with this index does while `work` runs, which must wait until that is done. One at
/// a time; a second waits.
DeviceActivity observe(int device, const std::function<void()>& work);

}  // namespace strobe::cuda::cupti
