// A product of matrices beside attention on a GPU that is not real.
#include <gtest/gtest.h>

#include "measure/benchmark.h"
#include "measure/product_trial.h"
#include "strobe/cuda.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

constexpr Device kDevice{Device::Kind::cuda, 0};
const test::ScopedVariable kCublas("STROBE_CUBLAS", STROBE_FAKE_CUBLAS);

class FakeProduct : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!status.unavailable.empty()) GTEST_SKIP() << status.unavailable;
  }
};

TEST_F(FakeProduct, IsThatOfTheMatrices) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (const std::int64_t size : {1, 17, 96}) {
      EXPECT_NO_THROW(ProductTrial(kDevice, size, dtype, {})) << name_of(dtype) << " " << size;
    }
  }
}

TEST_F(FakeProduct, IsNotBelievedIfItIsWrong) {
  const test::ScopedVariable wrong("STROBE_FAKE_CUBLAS_WRONG", "1");
  try {
    const ProductTrial trial(kDevice, 96, DType::fp32, {});
    FAIL() << "the product was not looked at";
  } catch (const Rejected& error) {
    EXPECT_NE(std::string(error.what()).find("cuBLAS 99.7 is wrong"), std::string::npos)
        << error.what();
  }
}

TEST_F(FakeProduct, IsOfFloatingPointNumbers) {
  EXPECT_THROW(ProductTrial(kDevice, 16, DType::int8, {}), Unsupported);
}

TEST_F(FakeProduct, IsTimedOnTheDevice) {
  const ProductTrial product(kDevice, 32, DType::bf16, {});
  SamplingPolicy policy = SamplingPolicy::exactly(3);
  policy.gpu_cache = Cache::cold;
  const std::vector<Trial> trials{product.trial(policy)};
  const ProductResult result = product.result(sample(trials, policy).front());
  EXPECT_EQ(result.library, "cuBLAS 99.7");
  EXPECT_NEAR(result.ms.median, 0.02, 1e-6) << "a fill that the host launches";
  EXPECT_NEAR(result.flops_per_second(result.ms.median), 2.0 * 32 * 32 * 32 / 20e-6, 1e6);
}

TEST_F(FakeProduct, TakesNoMoreThanThereIs) {
  const test::ScopedVariable little("STROBE_FAKE_GPU_MEMORY", "40000000");
  EXPECT_THROW(ProductTrial(kDevice, 4096, DType::fp32, {}), OutOfMemory);
}

}  // namespace
}  // namespace strobe::lab
