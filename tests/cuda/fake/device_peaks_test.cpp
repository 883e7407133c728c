// Peaks of a GPU that is not real, and rooflines under them.
#include <gtest/gtest.h>

#include "measure/peaks.h"
#include "measure/roofline.h"
#include "strobe/cuda.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

constexpr Device kGpu{Device::Kind::cuda, 0};

Benchmark result_on(Device device, const char* problem, PlanOptions options = {}) {
  return {.device = device, .options = options, .problem = Problem::parse(problem)};
}

TEST(DevicePeaks, AreThoseOfEveryInstructionAndOfTheMemory) {
  const CudaStatus status = cuda_status();
  if (!status.unavailable.empty()) GTEST_SKIP() << status.unavailable;
  const Peaks peaks = measure_device_peaks(kGpu);
  std::string names;
  for (const auto& rate : peaks.instructions) {
    if (rate.dtype != DType::fp16) names += rate.name + ", ";
  }
  EXPECT_EQ(names, "fma, mma, wgmma, ");
  // Four blocks of 256 threads, each with 64 multiply-adds in each of 8192 steps, in 20 us.
  EXPECT_NEAR(peaks.flops_per_second.at(DType::fp32), 4 * 256 * 64 * 2.0 * 8192 / 20e-6, 1e9);
  // Two warpgroups in each, with 4 products of 64 x 128 x 16 in each of 1024 steps.
  EXPECT_NEAR(peaks.flops_per_second.at(DType::bf16),
              4 * 2 * 4 * 64 * 128 * 16 * 2.0 * 1024 / 20e-6, 1e9);
  EXPECT_EQ(peaks.flops_per_second.at(DType::fp16), peaks.flops_per_second.at(DType::bf16));
  EXPECT_GT(peaks.tf32_flops_per_second, 0);
  ASSERT_EQ(peaks.copy.size(), 1u);
  EXPECT_NEAR(peaks.memory_bytes_per_second(),
              2 * static_cast<double>(peaks.copy[0].bytes_per_thread) / 10e-6, 1e9);
}

TEST(DevicePeaks, WhatCannotBeMeasuredIsNotThere) {
  const test::ScopedVariable little("STROBE_FAKE_GPU_MEMORY", "5000000");
  const Peaks peaks = measure_device_peaks(kGpu);
  EXPECT_TRUE(peaks.flops_per_second.empty()) << "the cache holds all that there is to copy";
  EXPECT_EQ(roofline(result_on(kGpu, "s64 bf16"), peaks).flops_per_second(), 0);
}

TEST(DevicePeaks, AreTheRoofOfResultsOfTheirDeviceAlone) {
  const Peaks peaks{.device = kGpu,
                    .flops_per_second = {{DType::fp32, 6e13}, {DType::bf16, 8e14}},
                    .tf32_flops_per_second = 3e14,
                    .copy = {{1 << 30, 4e12}}};
  const auto peak = [&](const Benchmark& result) { return roofline(result, peaks).peak_flops; };
  EXPECT_EQ(peak(result_on(kGpu, "s64 bf16")), 8e14);
  EXPECT_EQ(peak(result_on(kGpu, "s64 fp32")), 6e13);
  EXPECT_EQ(peak(result_on(kGpu, "s64 fp32", {.tf32 = true})), 3e14);
  EXPECT_EQ(peak(result_on(kGpu, "s64 bf16", {.tf32 = true})), 8e14);
  EXPECT_EQ(peak(result_on({Device::Kind::cuda, 1}, "s64 bf16")), 0);
  EXPECT_EQ(peak(result_on({}, "s64 bf16")), 0);
  EXPECT_EQ(roofline(result_on(kGpu, "s64 bf16"), peaks).bytes_per_second, 4e12);
}

}  // namespace
}  // namespace strobe::lab
