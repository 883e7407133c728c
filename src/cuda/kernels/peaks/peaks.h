#pragma once

#include <functional>
#include <vector>

#include "cuda/driver/device.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/kernel_description.h"
#include "strobe/accelerator.h"

// How many multiply-adds a GPU does in a second by each of its instructions, when it does nothing
// else.
namespace strobe::cuda::peaks {

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture);

/// Milliseconds that the device takes for what is put on the stream.
using Time = std::function<double(const std::function<void()>&)>;

std::vector<MultiplyRate> measure(const driver::Device& device, abi::Stream stream,
                                  const Time& time_ms);

}  // namespace strobe::cuda::peaks
