#include "cuda/jit/resources.h"

#include <gtest/gtest.h>

namespace strobe::cuda::jit {
namespace {

TEST(Resources, AreReadFromTheAssemblersWords) {
  // The second line of properties is of CUDA 13, the other as older versions write it.
  const auto all = parse_assembler_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    64 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 3 barriers, 1024 bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers\n"
      "ptxas info    : Compile time = 18.434 ms\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Resources{.entry = "first",
                               .registers = 168,
                               .spill_store_bytes = 16,
                               .spill_load_bytes = 24,
                               .stack_bytes = 64,
                               .shared_bytes = 1024}));
  EXPECT_EQ(all[1], (Resources{.entry = "second", .registers = 32}));
  EXPECT_EQ(read_resources(write_resources(all)), all);
}

TEST(Resources, SayWhetherProductsWaitForEachOther) {
  const auto all = parse_assembler_log(
      "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources for the function 'products'\n"
      "ptxas info    : Compiling entry function 'products' for 'sm_90a'\n"
      "ptxas info    : Used 168 registers\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], (Resources{.entry = "products", .registers = 168, .serialized = true}));
  EXPECT_EQ(read_resources(write_resources(all)), all);
}

TEST(Resources, OfNothingAreNone) {
  EXPECT_TRUE(parse_assembler_log("").empty());
  EXPECT_TRUE(parse_assembler_log("ptxas info    : Used 32 registers").empty());
}

}  // namespace
}  // namespace strobe::cuda::jit
