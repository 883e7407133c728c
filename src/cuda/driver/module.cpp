#include "cuda/driver/module.h"

namespace strobe::cuda::driver {

void Function::allow_dynamic_shared(int bytes) {
  api().cuFuncSetAttribute(handle_, abi::FunctionAttribute::max_dynamic_shared_size_bytes, bytes);
}

int Function::blocks_per_multiprocessor(int threads, int dynamic_shared_bytes) const {
  int blocks = 0;
  api().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, handle_, threads,
                                                    static_cast<std::size_t>(dynamic_shared_bytes));
  return blocks;
}

int Function::attribute(abi::FunctionAttribute which) const {
  int value = 0;
  api().cuFuncGetAttribute(&value, which, handle_);
  return value;
}

Module::Module(const Device& device, const std::string& image) {
  const ContextScope scope(device);
  abi::Module module = nullptr;
  api().cuModuleLoadData(&module, image.data());
  module_ = {device, module};
}

Function Module::function(const std::string& name) const {
  const ContextScope scope(module_.device());
  abi::Function function = nullptr;
  api().cuModuleGetFunction(&function, module_.get(), name.c_str());
  return Function(function);
}

}  // namespace strobe::cuda::driver
