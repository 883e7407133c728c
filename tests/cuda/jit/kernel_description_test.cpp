#include "cuda/jit/kernel_description.h"

#include <gtest/gtest.h>

namespace strobe::cuda::jit {
namespace {

const KernelDescription kKernel{
    .name = "example",
    .source = "kernels/example/example.cu",
    .entries = {"example"},
    .constants = {{"kBlockQueries", 128},
                  {"kCausal", true},
                  {"Element", TypeName{"device::bf16", "device/types.cuh"}},
                  {"Sum", TypeName{"float"}}},
    .threads = 256,
    .dynamic_shared_bytes = 65536};

TEST(KernelDescription, BecomesNamedConstants) {
  EXPECT_EQ(config_header(kKernel),
            "#pragma once\n"
            "#include \"device/types.cuh\"\n"
            "namespace config {\n"
            "constexpr int kBlockQueries = 128;\n"
            "constexpr bool kCausal = true;\n"
            "using Element = device::bf16;\n"
            "using Sum = float;\n"
            "constexpr int kThreads = 256;\n"
            "constexpr int kDynamicSharedBytes = 65536;\n"
            "}\n");
}

TEST(KernelDescription, IsPrintedOnOneLine) {
  EXPECT_EQ(configuration_text(kKernel),
            "kBlockQueries 128, kCausal, Element device::bf16, Sum float, kThreads 256, "
            "kDynamicSharedBytes 65536");
}

}  // namespace
}  // namespace strobe::cuda::jit
