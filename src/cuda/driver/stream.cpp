#include "cuda/driver/stream.h"

namespace strobe::cuda::driver {

Event::Event(const Device& device) {
  const ContextScope scope(device);
  abi::Event event = nullptr;
  api().cuEventCreate(&event, abi::kEventDefault);
  event_ = {device, event};
}

bool Event::reached() const {
  const abi::Result result = api().cuEventQuery.unchecked(event_.get());
  if (result == abi::Result::not_ready) return false;
  if (result != abi::Result::success) fail("cuEventQuery", result);
  return true;
}

float milliseconds_between(const Event& start, const Event& end) {
  float milliseconds = 0;
  api().cuEventElapsedTime(&milliseconds, start.get(), end.get());
  return milliseconds;
}

Stream::Stream(const Device& device) {
  const ContextScope scope(device);
  abi::Stream stream = nullptr;
  api().cuStreamCreate(&stream, abi::kStreamNonBlocking);
  stream_ = {device, stream};
}

}  // namespace strobe::cuda::driver
