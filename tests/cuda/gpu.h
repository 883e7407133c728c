#pragma once

#include <gtest/gtest.h>

#include "cuda/driver/device.h"
#include "cuda/driver/driver.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::test {

/// Tests that need a GPU skip, and say why, where there is none.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver::found().missing.empty()) GTEST_SKIP() << driver::found().missing;
  }

  static const driver::Device& device() { return driver::Device::at(0); }
};

/// And those that compile kernels as well.
class OnGpuWithCompiler : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (!IsSkipped() && !jit::found_nvrtc().missing.empty()) {
      GTEST_SKIP() << jit::found_nvrtc().missing;
    }
  }
};

}  // namespace strobe::cuda::test
