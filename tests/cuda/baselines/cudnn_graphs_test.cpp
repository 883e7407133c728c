// cuDNN recognises the graphs as attention and compiles kernels for them: an H200 is described to
// it and a driver that runs nothing stands in. Needs cuDNN and no GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "cuda/baselines/cudnn/attention_graph.h"
#include "cuda/baselines/cudnn/engine.h"
#include "strobe/error.h"

namespace strobe::cuda::cudnn {
namespace {

constexpr const char* kH200 = R"({"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900,
  "driverVer": 13000, "isTccDriver": 0, "l2CacheSize": 62914560, "maxCtasPerSM": 32,
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "memClockRateKHz": 3201000, "multiProcessorCount": 132, "pciDeviceId": 0, "regsPerBlock": 65536,
  "reservedSharedMemoryPerBlock": 1024, "smClockRateKHz": 1980000, "supportCoopLaunch": 1,
  "totalGlobalMem": 150000000000, "warpSize": 32, "maxBlockSize": [1024, 1024, 64],
  "maxGridSize": [2147483647, 65535, 65535]})";

class CudnnGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (!found().library) GTEST_SKIP() << found().missing;
    // Whoever asks for libcuda.so.1 after this gets the stand-in, for that is its name inside.
    ASSERT_NE(dlopen(STROBE_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }

  static void expect_engine(const char* text, bool deterministic = false) {
    const Problem problem = Problem::parse(text);
    const Descriptor device = device_properties(library(), kH200);
    try {
      const Engine engine(library(),
                          problem.pass == Pass::forward
                              ? forward_graph(library(), problem)
                              : backward_graph(library(), problem, deterministic),
                          {.device = &device});
    } catch (const Error& error) {
      ADD_FAILURE() << text << ": " << error.what();
    }
  }
};

TEST_F(CudnnGraphs, Forward) {
  expect_engine("b2 sq4096 h16 d128 bf16");
  expect_engine("b2 sq113 sk203 h6 hk2 d64 fp16 causal");
}

TEST_F(CudnnGraphs, ForwardOfPackedTensorsAndOtherDims) {
  expect_engine("b2 sq512 h4 d64 bf16 causal qkvpacked");
  expect_engine("b1 sq128 h2 d192 dv128 fp16");
  expect_engine("b1 sq1 sk147 h2 d256 bf16 causal");
}

TEST_F(CudnnGraphs, Backward) {
  expect_engine("b2 sq4096 h16 d128 bf16 bwd");
  expect_engine("b2 sq113 sk203 h6 hk2 d64 fp16 causal bwd");
}

TEST_F(CudnnGraphs, BackwardDeterministic) {
  expect_engine("b2 sq512 h4 hk2 d64 bf16 causal bwd", true);
}

TEST_F(CudnnGraphs, WhatCudnnSaysIsPassedOn) {
  const Problem problem = Problem::parse("b2 sq512 h4 d60 bf16");
  const Descriptor device = device_properties(library(), kH200);
  try {
    const Engine engine(library(), forward_graph(library(), problem), {.device = &device});
    ADD_FAILURE() << "a dim of 60 has an engine";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("not a multiple of 8"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace strobe::cuda::cudnn
