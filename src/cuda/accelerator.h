#pragma once

#include "strobe/accelerator.h"

namespace strobe::cuda {

/// Throws InvalidArgument for an index that there is not, Unsupported if there is no driver.
const Accelerator& accelerator_at(int index);

}  // namespace strobe::cuda
