#include "cuda/baselines/on_gpu.h"
#include "cuda/baselines/standard/cublas.h"
#include "cuda/baselines/standard/products.h"

namespace strobe::cuda::standard {
namespace {

std::string complaint(const char* path) {
  const strobe::test::ScopedVariable chosen("STROBE_CUBLAS", path);
  const cublas::Found found = cublas::load();
  EXPECT_EQ(found.library, nullptr) << path;
  EXPECT_EQ(found.missing.find('\n'), std::string::npos) << "one sentence: " << found.missing;
  return found.missing;
}

TEST(Cublas, IsNotThere) {
  const std::string sentence = complaint("/no/such/libcublas.so.13");
  for (const char* word : {"no cuBLAS", "/no/such/libcublas.so.13", "install", "STROBE_CUBLAS"}) {
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
  }
}

TEST(Cublas, IsSomethingElse) {
  const std::string sentence = complaint("libm.so.6");
  for (const char* word : {"is not cuBLAS", "cublasGemmStridedBatchedEx", "STROBE_CUBLAS"}) {
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
  }
}

TEST(StandardMatrices, KeepTheirDistanceWhenTransposed) {
  const Matrices matrices{nullptr, 5, 7, 8};
  EXPECT_EQ(matrices.distance(), 40);
  EXPECT_EQ(matrices.transposed().rows, 7);
  EXPECT_EQ(matrices.transposed().columns, 5);
  EXPECT_EQ(matrices.transposed().distance(), 40);
  EXPECT_FALSE(matrices.transposed().transposed().is_transposed);
}

class StandardOnGpu : public test::BaselineOnGpu {
 protected:
  void SetUp() override {
    BaselineOnGpu::SetUp();
    skip_unless_supported("cuda:standard", "b1 sq128 h1 d64 bf16");
  }
};

TEST_F(StandardOnGpu, AgreesWithTheOracle) {
  for (const char* problem :
       {"b2 sq130 sk40 h4 hk2 d21 fp32 causal bwd", "b1 sq33 sk1500 h2 d64 dv40 fp32 w100:7 bwd",
        "b2 sq7 sk0 h2 d64 fp32 bwd", "b0 sq7 sk7 h2 d64 fp32 bwd"}) {
    expect_ok(problem);
  }
  for (const char* problem : {"b2 sq256 h4 d64 bf16", "b2 sq113 sk203 h6 hk2 d64 fp16 causal bwd",
                              "b2 sq1 sk1 h2 d64 fp16 bwd"}) {
    expect_ok_but_for_lse(problem);
  }
}

TEST_F(StandardOnGpu, HasEveryFeatureOfADenseProblem) {
  for (const char* problem :
       {"b2 sq65 sk90 h4 hk2 d64 fp32 cap15 bwd", "b2 sq65 sk90 h4 d64 fp32 sinks bwd",
        "b2 sq65 sk90 h4 d64 fp32 bias:bhqk cap15 bwd", "b2 sq65 sk90 h4 d64 fp32 bias:k bwd",
        "b2 sq65 sk1100 h4 d64 fp32 drop0.17 seed42 causal bwd"}) {
    expect_ok(problem);
  }
  expect_ok_but_for_lse("b2 sq65 sk90 h4 d64 bf16 alibi causal bwd");
  expect_ok_but_for_lse("b2 sq50 sk60 h2 d64 bf16 sinks bias:bk bwd", {.masked_bias = true});
}

TEST_F(StandardOnGpu, TakesTensorsThatLieAnywhere) {
  for (const auto storage :
       {lab::Storage::transposed, lab::Storage::sliced, lab::Storage::expanded}) {
    expect_ok("b2 sq100 h4 hk2 d64 fp32 bwd", {.storage = storage});
    expect_ok_but_for_lse("b2 sq100 h4 hk2 d60 bf16 bwd", {.storage = storage});
  }
}

}  // namespace
}  // namespace strobe::cuda::standard
