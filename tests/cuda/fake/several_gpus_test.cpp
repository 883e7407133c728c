// GPUs that are not real, the first of them too old for any kernel: everything is on the one that
// was asked for, whichever is current in the thread. Handles of another are refused.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/shared_object.h"
#include "strobe/accelerator.h"
#include "strobe/attention.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "strobe/strobe.h"
#include "support/environment.h"

namespace strobe {
namespace {

// Before anything asks for a driver.
const test::ScopedVariable kBackend("STROBE_CUDA_LIBRARY", STROBE_CUDA_BACKEND);
const test::ScopedVariable kDriver("STROBE_CUDA_DRIVER", STROBE_FAKE_GPU);
const test::ScopedVariable kGpus("STROBE_FAKE_GPUS", "3");
const test::ScopedVariable kCapabilities("STROBE_FAKE_GPU_CAPABILITIES", "7.5,9.0,9.0");

constexpr Device kOld{Device::Kind::cuda, 0};
constexpr Device kHere{Device::Kind::cuda, 1};
constexpr Device kElsewhere{Device::Kind::cuda, 2};
constexpr std::size_t kBytes = 4096;

class SeveralGpus : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!status.unavailable.empty()) GTEST_SKIP() << status.unavailable;
  }

  template <class Function>
  static Function* of_driver(const char* name) {
    Function* function = nullptr;
    EXPECT_TRUE(SharedObject({STROBE_FAKE_GPU}).find(name, function)) << name;
    return function;
  }

  static int kernels_run(Device device) {
    return of_driver<int(int)>("fake_gpu_kernels_run")(device.index);
  }

  /// As the host program may have it: a context of its own current in the thread.
  class Current {
   public:
    explicit Current(Device device) {
      void* context = nullptr;
      of_driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device.index);
      of_driver<int(void*)>("cuCtxPushCurrent_v2")(context);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      void* context = nullptr;
      of_driver<int(void**)>("cuCtxPopCurrent_v2")(&context);
    }
  };

  static const Implementation& flash() { return Registry::instance().find("cuda:flash"); }

  static Problem problem() { return Problem::parse("b1 s64 h2 d64 bf16"); }

  /// Of the problem, on a device.
  struct Arrays {
    explicit Arrays(Device device) {
      for (auto& array : memory) array = accelerator(device).allocate(64 * 2 * 64 * 2);
      const auto view = [&](std::size_t i) {
        return TensorView::contiguous(memory[i].get(), DType::bf16, {1, 64, 2, 64}, device);
      };
      tensors = {.q = view(0), .k = view(1), .v = view(2), .out = view(3)};
    }

    std::array<std::shared_ptr<std::byte>, 4> memory;
    Tensors tensors{};
  };
};

TEST_F(SeveralGpus, WhatIsTooOldIsMissingAndNoError) {
  const Support support = flash().supports(problem(), {.device = kOld.index});
  EXPECT_EQ(support.missing,
            std::vector<std::string>{"compute capability 8.0, that of cuda:0 (Fake GPU) is 7.5"});
  EXPECT_THROW(Registry::instance().best(problem(), kOld), Unsupported);
  EXPECT_THROW(flash().supports(problem(), {.device = 3}), InvalidArgument);
}

/// These need the compiler of kernels.
class KernelsOnSeveralGpus : public SeveralGpus {
 protected:
  void SetUp() override {
    SeveralGpus::SetUp();
    if (IsSkipped()) return;
    const Support support = flash().supports(problem(), {.device = kHere.index});
    if (!support) GTEST_SKIP() << support.missing.front();
  }

 private:
  const test::ScopedVariable cache_{"STROBE_CACHE_DIR",
                                    (testing::TempDir() + "strobe_several_gpus").c_str()};
};

TEST_F(KernelsOnSeveralGpus, AnAcceleratorUsesItsOwn) {
  for (const auto& [device, other] : {std::pair{kElsewhere, kHere}, std::pair{kHere, kElsewhere}}) {
    const Current not_this(other);
    const Accelerator& gpu = accelerator(device);
    const std::int64_t free_here = gpu.free_bytes(), free_there = accelerator(other).free_bytes();
    const auto memory = gpu.allocate(kBytes);
    EXPECT_EQ(gpu.free_bytes(), free_here - static_cast<std::int64_t>(kBytes));
    EXPECT_EQ(accelerator(other).free_bytes(), free_there);
    std::vector<std::byte> sent(kBytes, std::byte{7}), back(kBytes);
    gpu.upload(memory.get(), sent.data(), kBytes);
    gpu.download(back.data(), memory.get(), kBytes);
    EXPECT_EQ(back, sent);
    const auto fill = [&] { gpu.fill(memory.get(), std::byte{1}, kBytes); };
    EXPECT_GT(gpu.time_ms(fill), 0);
    EXPECT_NO_THROW(gpu.record(fill)());
    EXPECT_NO_THROW(gpu.wait());
  }
}

TEST_F(KernelsOnSeveralGpus, APlanIsForItsDevice) {
  EXPECT_EQ(&Registry::instance().best(problem(), kHere), &flash());
  for (const Device current : {kElsewhere, kHere}) {
    const Current scope(current);
    const Plan plan = flash().plan(problem(), {.device = kHere.index});
    EXPECT_EQ(plan.device, kHere);
    const Arrays arrays(kHere);
    const auto workspace = accelerator(kHere).allocate(plan.workspace_bytes);
    const int before = kernels_run(kHere);
    flash().run(plan, arrays.tensors, workspace.get(), plan.workspace_bytes);
    EXPECT_GT(kernels_run(kHere), before);
    EXPECT_EQ(kernels_run(kElsewhere), 0);
  }
}

TEST_F(KernelsOnSeveralGpus, AnAttentionHasItsWorkspaceThere) {
  Problem backward = problem();
  backward.pass = Pass::backward;
  const std::int64_t free_there = accelerator(kElsewhere).free_bytes();
  TrainingAttention attention(backward, {.device = kHere});
  EXPECT_EQ(&attention.implementation(), &flash());
  EXPECT_EQ(accelerator(kElsewhere).free_bytes(), free_there);
  const Arrays arrays(kHere);
  EXPECT_NO_THROW(attention.forward(arrays.tensors));
  const Arrays elsewhere(kElsewhere);
  try {
    attention.forward(elsewhere.tensors);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("q is on cuda:2, the plan was made for cuda:1"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(KernelsOnSeveralGpus, AreReachedFromC) {
  strobe_problem wanted;
  strobe_problem_init(&wanted);
  wanted.batch = 1;
  wanted.seqlen_q = 64;
  wanted.heads = 2;
  wanted.dim = 64;
  wanted.dtype = STROBE_BF16;
  strobe_plan_options options;
  strobe_plan_options_init(&options);
  options.device = STROBE_CUDA;
  strobe_plan* plan = nullptr;
  EXPECT_EQ(strobe_plan_create_with(&wanted, nullptr, &options, &plan), STROBE_UNSUPPORTED);
  EXPECT_NE(std::string(strobe_last_error()).find("compute capability 8.0"), std::string::npos)
      << strobe_last_error();
  options.device_index = kHere.index;
  ASSERT_EQ(strobe_plan_create_with(&wanted, nullptr, &options, &plan), STROBE_OK)
      << strobe_last_error();
  EXPECT_TRUE(std::string(strobe_plan_description(plan)).starts_with("cuda:flash kernel="));
  strobe_plan_destroy(plan);
}

}  // namespace
}  // namespace strobe
