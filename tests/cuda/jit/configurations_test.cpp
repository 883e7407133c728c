// Every configuration of every kernel compiles for every generation of GPUs, takes no more
// registers than were planned, keeps nothing in local memory and lets no product wait for the one
// before. Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/catalogue.h"

namespace strobe::cuda::jit {
namespace {

struct Case {
  Architecture architecture;
  KernelDescription kernel;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* name : {"sm_80", "sm_89", "sm_90a", "sm_120"}) {
    const Architecture architecture = Architecture::parse(name);
    for (auto& kernel : kernel_configurations(architecture))
      cases.push_back({architecture, kernel});
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string kernel = info.param.kernel.name;
  std::replace(kernel.begin(), kernel.end(), '/', '_');
  return concat(info.param.architecture.text(), "_", kernel, "_", info.index);
}

class KernelConfigurations : public testing::TestWithParam<Case> {};

TEST_P(KernelConfigurations, CompileWithinTheirPlan) {
  const auto& [architecture, kernel] = GetParam();
  if (!found_nvrtc().missing.empty()) GTEST_SKIP() << found_nvrtc().missing;
  if (!nvrtc().knows(architecture.number())) {
    GTEST_SKIP() << "NVRTC " << nvrtc().version() << " does not know " << architecture.text();
  }
  SCOPED_TRACE(configuration_text(kernel));
  const Built built = build(kernel, architecture);
  for (const std::string& entry : kernel.entries) {
    const auto& all = built.binary.resources;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Resources& r) { return r.entry == entry; });
    ASSERT_NE(found, all.end()) << entry;
    EXPECT_EQ(found->spill_store_bytes, 0) << entry;
    EXPECT_EQ(found->spill_load_bytes, 0) << entry;
    EXPECT_EQ(found->stack_bytes, 0) << entry;
    EXPECT_FALSE(found->serialized) << entry;
    EXPECT_LE(found->registers, kernel.max_registers) << entry;
  }
}

INSTANTIATE_TEST_SUITE_P(, KernelConfigurations, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace strobe::cuda::jit
