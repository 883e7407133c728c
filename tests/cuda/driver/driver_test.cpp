#include "cuda/driver/driver.h"

#include <gtest/gtest.h>

#include "support/environment.h"

namespace strobe::cuda::driver {
namespace {

/// What is said of a library that is no driver to use.
std::string complaint(const char* path) {
  const strobe::test::ScopedVariable chosen("STROBE_CUDA_DRIVER", path);
  const Found found = load();
  EXPECT_EQ(found.api, nullptr) << path;
  EXPECT_EQ(found.missing.find('\n'), std::string::npos) << "one sentence: " << found.missing;
  return found.missing;
}

void expect_words(const std::string& sentence, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
  }
}

TEST(CudaDriver, IsNotThere) {
  expect_words(complaint("/no/such/libcuda.so.1"),
               {"no NVIDIA driver", "/no/such/libcuda.so.1", "525", "STROBE_CUDA_DRIVER"});
}

TEST(CudaDriver, IsNoDriver) {
  expect_words(complaint("libm.so.6"), {"not NVIDIA's driver", "STROBE_CUDA_DRIVER"});
}

TEST(CudaDriver, IsTooOld) {
  expect_words(complaint(STROBE_FAKE_OLD), {"too old", "CUDA 11.4", "12.0", "525"});
}

TEST(CudaDriver, FindsNoDevice) {
  expect_words(complaint(STROBE_FAKE_NO_DEVICE), {"no GPU", "nvidia-smi", "CUDA_VISIBLE_DEVICES"});
}

TEST(CudaDriver, IsTheToolkitsStandIn) {
  expect_words(complaint(STROBE_FAKE_STUB), {"stand-in", "LD_LIBRARY_PATH"});
}

TEST(CudaDriver, DoesNotStart) {
  expect_words(complaint(STROBE_FAKE_BROKEN),
               {"cuInit", "CUDA_ERROR_FAKE", "this driver is not real"});
}

TEST(CudaDriver, LacksFunctions) {
  expect_words(complaint(STROBE_FAKE_PARTIAL), {"lacks", "cuLaunchKernelEx", "525"});
}

TEST(CudaDriver, ErrorsNameTheCallAndWhatItReturned) {
  const strobe::test::ScopedVariable chosen("STROBE_CUDA_DRIVER", STROBE_FAKE_OLD);
  try {
    fail("cuStreamCreate", abi::Result::not_ready);
  } catch (const CudaError& error) {
    EXPECT_STREQ(error.what(), "cuStreamCreate failed: CUDA_ERROR_FAKE (this driver is not real)");
    EXPECT_EQ(error.result(), abi::Result::not_ready);
  }
  EXPECT_THROW(fail("cuMemAlloc", abi::Result::out_of_memory), OutOfMemory);
}

}  // namespace
}  // namespace strobe::cuda::driver
