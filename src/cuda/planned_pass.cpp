#include "cuda/planned_pass.h"

#include "cuda/driver/driver.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/known_compiler.h"

namespace strobe::cuda {

std::vector<std::string> missing_for_kernels(int device) {
  if (!driver::found().missing.empty()) return {driver::found().missing};
  std::vector<std::string> missing;
  if (auto older = jit::Architecture::missing(driver::Device::at(device)); !older.empty())
    missing.push_back(std::move(older));
  if (auto reason = jit::missing_compiler(); !reason.empty()) missing.push_back(std::move(reason));
  return missing;
}

}  // namespace strobe::cuda
