// The oldest compiler that is taken, that of CUDA 12.0, knows what kernels say to it: instructions
// that came later have others in their place there.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/catalogue.h"

namespace strobe::cuda::jit {
namespace {

const Architecture kNewest{.major = 9, .minor = 0, .specific = true};

/// The first and the last configuration of every kernel, which are the plainest and the oddest. On
/// Hopper there are all kernels.
std::vector<KernelDescription> some_of_each() {
  const auto all = kernel_configurations(kNewest);
  const auto same = [](const KernelDescription& kernel) {
    return [name = kernel.name](const KernelDescription& other) { return other.name == name; };
  };
  std::vector<KernelDescription> some;
  for (const KernelDescription& kernel : all) {
    if (std::any_of(some.begin(), some.end(), same(kernel))) continue;
    some.push_back(kernel);
    const auto last = std::find_if(all.rbegin(), all.rend(), same(kernel));
    if (&*last != &kernel) some.push_back(*last);
  }
  return some;
}

std::string kernel_name(const testing::TestParamInfo<KernelDescription>& info) {
  std::string kernel = info.param.name;
  std::replace(kernel.begin(), kernel.end(), '/', '_');
  return concat(kernel, "_", info.index);
}

class KernelConfigurationsOnOldestCompiler : public testing::TestWithParam<KernelDescription> {};

TEST_P(KernelConfigurationsOnOldestCompiler, Compile) {
  const KernelDescription& kernel = GetParam();
  const FoundNvrtc found = first_that_serves({STROBE_OLDEST_NVRTC}, 0);
  if (!found.nvrtc) GTEST_SKIP() << found.missing;
  EXPECT_EQ(found.nvrtc->version(), "12.0");
  const Binary binary = compile(*found.nvrtc, kernel, embedded_source(kernel.source), kNewest);
  EXPECT_EQ(binary.resources.size(), kernel.entries.size());
}

INSTANTIATE_TEST_SUITE_P(, KernelConfigurationsOnOldestCompiler, testing::ValuesIn(some_of_each()),
                         kernel_name);

}  // namespace
}  // namespace strobe::cuda::jit
