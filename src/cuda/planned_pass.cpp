#include "cuda/planned_pass.h"

#include "cuda/driver/driver.h"
#include "cuda/jit/known_compiler.h"

namespace strobe::cuda {

const std::vector<std::string>& missing_for_kernels() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> missing;
    if (!driver::found().missing.empty()) {
      missing.push_back(driver::found().missing);
      return missing;
    }
    if (auto reason = jit::missing_compiler(); !reason.empty())
      missing.push_back(std::move(reason));
    return missing;
  }();
  return list;
}

}  // namespace strobe::cuda
