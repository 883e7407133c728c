#include "cuda/planned_pass.h"

#include "cuda/driver/driver.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda {

const std::vector<std::string>& missing_for_kernels() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> missing;
    if (!driver::found().missing.empty()) {
      missing.push_back(driver::found().missing);
      return missing;
    }
    if (!jit::found_nvrtc().missing.empty()) missing.push_back(jit::found_nvrtc().missing);
    return missing;
  }();
  return list;
}

}  // namespace strobe::cuda
