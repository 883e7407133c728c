// What the laboratory asks of a GPU, on a real one.
#include "cuda/accelerator.h"

#include <algorithm>

#include "cuda/driver/nvml.h"
#include "cuda/gpu.h"
#include "measure/product_trial.h"
#include "strobe/error.h"

namespace strobe::cuda {
namespace {

class CudaAccelerator : public test::OnGpuWithCompiler {
 protected:
  static const Accelerator& gpu() { return accelerator_at(0); }
};

TEST_F(CudaAccelerator, ReplaysWhatWasRecorded) {
  constexpr std::size_t kBytes = 4096;
  const auto memory = gpu().allocate(kBytes);
  const auto fill = [&] { gpu().fill(memory.get(), std::byte{7}, kBytes); };
  gpu().fill(memory.get(), std::byte{1}, kBytes);
  const auto replay = gpu().record(fill);
  std::byte there{};
  gpu().download(&there, memory.get(), 1);
  EXPECT_EQ(there, std::byte{1}) << "recording does nothing";
  EXPECT_GT(gpu().time_ms(replay), 0);
  gpu().download(&there, memory.get(), 1);
  EXPECT_EQ(there, std::byte{7});
}

TEST_F(CudaAccelerator, TellsItsClocksIfNvmlIsThere) {
  const DeviceState state = gpu().state();
  if (!driver::load_nvml().missing.empty()) {
    EXPECT_FALSE(state.clock_mhz || state.power_w);
    return;
  }
  ASSERT_TRUE(state.clock_mhz);
  EXPECT_GT(*state.clock_mhz, 100);
  EXPECT_GT(state.memory_used_bytes.value_or(0), 0);
}

TEST_F(CudaAccelerator, RefusesMemoryThatThereIsNotAndGoesOn) {
  const std::int64_t free = gpu().free_bytes();
  EXPECT_THROW((void)gpu().allocate(static_cast<std::size_t>(free) * 2), OutOfMemory);
  EXPECT_NE(gpu().allocate(1 << 20), nullptr);
}

TEST_F(CudaAccelerator, MultipliesMatricesByItsLibrary) {
  try {
    gpu().square_product(8, DType::fp32, false);
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    EXPECT_NO_THROW(lab::ProductTrial({Device::Kind::cuda, 0}, 1000, dtype, {})) << name_of(dtype);
  }
  EXPECT_NO_THROW(lab::ProductTrial({Device::Kind::cuda, 0}, 1000, DType::fp32, {.tf32 = true}));
}

TEST_F(CudaAccelerator, MultipliesFasterWithFewerBits) {
  const std::vector<MultiplyRate> rates = gpu().multiply_rates();
  const auto rate = [&](const std::string& name) {
    const auto found = std::find_if(rates.begin(), rates.end(),
                                    [&](const MultiplyRate& each) { return each.name == name; });
    return found == rates.end() ? 0 : found->per_second;
  };
  EXPECT_GT(rate("fma"), 1e12);
  EXPECT_GT(rate("mma of TF32"), 0.5 * rate("fma"));
  EXPECT_GT(rate("mma"), 1.5 * rate("mma of TF32"));
  if (device().capability_major() == 9) {
    EXPECT_GT(rate("wgmma"), 1.1 * rate("mma"));
  }
}

}  // namespace
}  // namespace strobe::cuda
