#pragma once

#include <functional>

#include "cuda/driver/owned.h"

namespace strobe::cuda::driver {

/// Work that was recorded once and is launched as a whole.
class Graph {
 public:
  /// Records what `work` puts on the stream, which does not run. If `work` throws, the stream is as
  /// it was before.
  static Graph capture(const Device& device, abi::Stream stream, const std::function<void()>& work);

  void launch(abi::Stream stream) const { api().cuGraphLaunch(exec_.get(), stream); }

 private:
  static void release(const Api& driver, abi::GraphExec exec) {
    driver.cuGraphExecDestroy.unchecked(exec);
  }

  Owned<abi::GraphExec, release> exec_{};
};

/// While it lives, its thread may load modules and allocate memory of the device although a stream
/// is being captured, which drivers otherwise refuse. None of that is recorded.
class OutsideOfCapture {
 public:
  explicit OutsideOfCapture(const Device& device);
  OutsideOfCapture(const OutsideOfCapture&) = delete;
  OutsideOfCapture& operator=(const OutsideOfCapture&) = delete;
  ~OutsideOfCapture();

 private:
  ContextScope scope_;
  abi::CaptureMode mode_ = abi::CaptureMode::relaxed;  ///< and then what it was before
};

/// Kernels among what `work` puts on the stream, which does not run.
int count_kernels(const Device& device, abi::Stream stream, const std::function<void()>& work);

}  // namespace strobe::cuda::driver
