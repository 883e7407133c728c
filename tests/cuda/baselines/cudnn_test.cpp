#include "cuda/baselines/cudnn/attention.h"
#include "cuda/baselines/on_gpu.h"

namespace strobe::cuda::cudnn {
namespace {

std::string complaint(const char* path) {
  const strobe::test::ScopedVariable chosen("STROBE_CUDNN", path);
  const Found found = load();
  EXPECT_EQ(found.library, nullptr) << path;
  EXPECT_EQ(found.missing.find('\n'), std::string::npos) << "one sentence: " << found.missing;
  return found.missing;
}

TEST(Cudnn, IsNotThere) {
  const std::string sentence = complaint("/no/such/libcudnn.so.9");
  for (const char* word : {"no cuDNN", "/no/such/libcudnn.so.9", "install", "STROBE_CUDNN"}) {
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
  }
}

TEST(Cudnn, IsSomethingElse) {
  const std::string sentence = complaint("libm.so.6");
  EXPECT_NE(sentence.find("is not cuDNN 9"), std::string::npos) << sentence;
}

constexpr std::size_t kVersion = 91900;

std::vector<std::string> missing_for(const char* text, std::size_t version = kVersion) {
  return missing(Problem::parse(text), version);
}

using Sentences = std::vector<std::string>;

TEST(Cudnn, TakesWhatItCanDo) {
  for (const char* text :
       {"b2 sq128 h4 d64 bf16", "b2 sq128 h4 hk2 d64 fp16 causal bwd", "b1 sq70 sk100 h2 d256 bf16",
        "b1 sq70 sk100 h2 d64 dv128 bf16 causal", "b1 sq100 sk70 h2 d8 bf16 bwd",
        "b1 sq64 h2 d64 bf16 w:0", "b1 sq1 sk147 h2 d32 bf16 causal bwd"}) {
    EXPECT_EQ(missing_for(text), Sentences{}) << text;
  }
}

TEST(Cudnn, SaysWhatItCannotDo) {
  const std::pair<const char*, const char*> refused[] = {
      {"b1 sq64 h2 d64 fp32", "dtype fp32"},
      {"b2 lq3,8 h2 d64 bf16", "variable lengths"},
      {"b1 sq64 h2 d64 bf16 w5:0", "a window"},
      {"b1 sq64 h2 d64 bf16 w5:", "a window"},
      {"b1 sq64 h2 d64 bf16 w:5", "a window"},
      {"b1 sq100 sk70 h2 d64 bf16 causal", "a causal mask with more queries than keys"},
      {"b1 sq64 h2 d64 bf16 cap15", "softcap"},
      {"b1 sq64 h2 d64 bf16 alibi", "ALiBi"},
      {"b1 sq64 h2 d64 bf16 sinks", "sinks"},
      {"b1 sq64 h2 d64 bf16 bias:bhqk", "a bias"},
      {"b1 sq64 h2 d64 bf16 drop0.1", "dropout"},
      {"b1 sq64 h2 d64 bf16 scale-0.1", "a scale that is not positive"},
      {"b1 sq64 h2 d60 bf16", "head dims that are no multiple of 8"},
      {"b1 sq64 h2 d64 dv264 bf16", "head dims above 256"},
      {"b1 sq7 sk0 h2 d64 bf16", "tensors without elements"},
      {"b2 sq1 sk1 h2 d64 bf16 bwd", "the backward pass of one query and one key"},
  };
  for (const auto& [text, sentence] : refused) {
    EXPECT_EQ(missing_for(text), Sentences{sentence}) << text;
  }
}

TEST(Cudnn, OldVersionsAreNotAskedForGradientsTheyGetWrong) {
  EXPECT_EQ(missing_for("b1 sq64 sk100 h2 d64 bf16 bwd", 91500).size(), 1U);
  EXPECT_EQ(missing_for("b1 sq64 sk256 h2 d64 bf16 bwd", 91500), Sentences{});
  EXPECT_EQ(missing_for("b1 sq64 sk100 h2 d64 bf16 bwd", 91501), Sentences{});
}

TEST(Cudnn, OperandsArePackedAsTheLayoutSays) {
  const auto strides = natural_strides(Problem::parse("b2 sq10 h3 d8 bf16 qkvpacked"));
  EXPECT_EQ(strides.q, (Axes{10 * 72, 8, 72, 1}));
  EXPECT_EQ(strides.dv, strides.q);
  EXPECT_EQ(strides.out, (Axes{10 * 24, 8, 24, 1}));
  const auto apart = natural_strides(Problem::parse("b2 sq10 sk20 h4 hk2 d8 dv16 bf16"));
  EXPECT_EQ(apart.k, (Axes{20 * 16, 8, 16, 1}));
  EXPECT_EQ(apart.v, (Axes{20 * 32, 16, 32, 1}));
}

class CudnnOnGpu : public test::BaselineOnGpu {
 protected:
  void SetUp() override {
    BaselineOnGpu::SetUp();
    skip_unless_supported("cuda:cudnn", "b1 sq128 h1 d64 bf16");
  }
};

TEST_F(CudnnOnGpu, AgreesWithTheOracle) {
  for (const char* problem :
       {"b2 sq256 h4 d64 bf16", "b2 sq113 sk203 h6 hk2 d64 fp16 causal",
        "b1 sq128 h2 d128 bf16 causal bwd", "b2 sq113 sk256 h6 hk2 d64 bf16 causal bwd"}) {
    expect_ok(problem);
  }
}

TEST_F(CudnnOnGpu, GivesTheSameBitsIfAsked) {
  expect_ok("b2 sq200 sk256 h4 hk2 d64 bf16 bwd", {}, {.deterministic = true});
}

TEST_F(CudnnOnGpu, TakesTensorsThatLieAnywhere) {
  for (const auto storage : {lab::Storage::transposed, lab::Storage::sliced}) {
    expect_ok("b2 sq128 h4 hk2 d64 bf16 bwd", {.storage = storage});
  }
  expect_ok("b2 sq128 h4 d64 bf16 qkvpacked bwd", {.storage = lab::Storage::sliced});
}

}  // namespace
}  // namespace strobe::cuda::cudnn
