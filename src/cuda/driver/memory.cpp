#include "cuda/driver/memory.h"

#include "core/text.h"

namespace strobe::cuda::driver {

DeviceMemory::DeviceMemory(const Device& device, std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(device);
  abi::DevicePointer pointer = nullptr;
  const abi::Result result = api().cuMemAlloc.unchecked(&pointer, bytes);
  if (result == abi::Result::out_of_memory) {
    throw OutOfMemory(concat("cuda:", device.index(), " is out of memory: needed ", bytes,
                             " bytes, ", free_memory(device), " free"));
  }
  if (result != abi::Result::success) fail("cuMemAlloc", result);
  pointer_ = {device, pointer};
}

void copy_async(void* to, const void* from, std::size_t bytes, abi::Stream stream) {
  if (bytes > 0) api().cuMemcpyAsync(to, from, bytes, stream);
}

void fill_async(void* data, unsigned char byte, std::size_t bytes, abi::Stream stream) {
  if (bytes > 0) api().cuMemsetD8Async(data, byte, bytes, stream);
}

std::size_t free_memory(const Device& device) {
  const ContextScope scope(device);
  std::size_t free = 0;
  std::size_t total = 0;
  api().cuMemGetInfo(&free, &total);
  return free;
}

}  // namespace strobe::cuda::driver
