// The emulated GPU must notice what a real one would, or might, get wrong.

#include <vector>

#include "cuda/driver/launch.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "cuda/jit/build.h"

namespace strobe::cuda {
namespace {

constexpr int kBlocks = 16;
constexpr int kThreads = 64;
constexpr int kSharedBytes = 1024;

class Emulation : public test::OnGpuWithCompiler {
 protected:
  void SetUp() override {
    if (std::getenv("STROBE_EMULATED_GPU") == nullptr) {
      GTEST_SKIP() << "STROBE_EMULATED_GPU is not set: see tests/cuda/emulated_gpu";
    }
    test::OnGpuWithCompiler::SetUp();
    ASSERT_EQ(device().name(), "emulated GPU");
  }

  /// Runs `body` in a kernel where `memory` is shared and `at` this thread's number in the grid,
  /// with so many blocks beside each other. Returns what it leaves in `out`, and in `took_ms` how
  /// long it took.
  static std::vector<unsigned> run(const std::string& body, float* took_ms = nullptr,
                                   unsigned cluster = 1) {
    const std::string source =
        "#include \"config.cuh\"\n"
        "#include \"device/ptx/async_copy.cuh\"\n"
        "#include \"device/ptx/cluster.cuh\"\n"
        "#include \"device/ptx/mbarrier.cuh\"\n"
        "#include \"device/ptx/mma.cuh\"\n"
        "#include \"device/ptx/shared_memory.cuh\"\n"
        "#include \"device/ptx/tensor_copy.cuh\"\n"
        "#include \"device/ptx/warpgroup.cuh\"\n"
        "extern \"C\" __global__ void body(unsigned* out) {\n"
        "  using namespace strobe::cuda;\n"
        "  extern __shared__ uint4 memory[];\n"
        "  unsigned* const words = reinterpret_cast<unsigned*>(memory);\n"
        "  const unsigned thread = threadIdx.x, at = blockIdx.x * blockDim.x + thread;\n" +
        body + "}\n";
    const jit::DiskCache nowhere(testing::TempDir() + "strobe_emulation_test");
    const auto built = jit::build({.name = "body", .source = "body.cu", .entries = {"body"}},
                                  source, jit::Architecture::of(device()), nowhere);
    const driver::ContextScope scope(device());
    const driver::Module module(device(), built.binary.cubin);
    std::vector<unsigned> out(kBlocks * kThreads);
    const std::size_t bytes = out.size() * sizeof(unsigned);
    const driver::DeviceMemory there(device(), bytes);
    const driver::Stream stream(device());
    driver::Event begin(device()), end(device());
    begin.record(stream.get());
    driver::launch(module.function("body"),
                   {.grid = {.x = kBlocks},
                    .block = {.x = kThreads},
                    .cluster = {.x = cluster},
                    .dynamic_shared_bytes = kSharedBytes},
                   stream.get(), static_cast<unsigned*>(there.data()));
    end.record(stream.get());
    driver::copy_async(out.data(), there.data(), bytes, stream.get());
    stream.synchronize();
    if (took_ms != nullptr) driver::api().cuEventElapsedTime(took_ms, begin.get(), end.get());
    return out;
  }

  /// Every thread's number within its block, from the last to the first.
  static std::vector<unsigned> mirrored() {
    std::vector<unsigned> numbers;
    for (unsigned i = 0; i < kBlocks * kThreads; ++i)
      numbers.push_back(kThreads - 1 - i % kThreads);
    return numbers;
  }
};

TEST_F(Emulation, ABarrierMakesWhatOthersWroteVisible) {
  EXPECT_EQ(run("words[thread] = thread; __syncthreads(); out[at] = words[63 - thread];"),
            mirrored());
}

TEST_F(Emulation, AMissingBarrierShows) {
  EXPECT_NE(run("words[thread] = thread; out[at] = words[63 - thread];"), mirrored());
}

TEST_F(Emulation, ACopyIsThereOnlyWhenWaitedFor) {
  const std::string start =
      "out[at] = 63 - thread; __syncthreads();\n"
      "if (thread < 16) ptx::copy_chunk_async(thread * 16, out + at / 64 * 64 + thread * 4, "
      "true);\n"
      "ptx::commit_copies();\n";
  const std::string end = "__syncthreads(); out[at] = words[thread];";
  EXPECT_EQ(run(start + "ptx::wait_for_copies<0>();" + end), mirrored());
  EXPECT_NE(run(start + end), mirrored());
}

TEST_F(Emulation, AnAddressBeyondSharedMemoryFails) {
  EXPECT_NO_THROW(run("ptx::store_word(1020, at);"));
  EXPECT_THROW(run("ptx::store_word(1024, at);"), driver::CudaError);
  EXPECT_THROW(run("ptx::store_word(2, at);"), driver::CudaError) << "not aligned";
}

TEST_F(Emulation, ThreadsThatWaitForEverFail) {
  EXPECT_THROW(run("if (thread < 32) __syncthreads();"), driver::CudaError);
  EXPECT_THROW(run("if (thread % 2 == 0) __syncwarp();"), driver::CudaError);
}

TEST_F(Emulation, TimeIsToldByWhatIsMultiplied) {
  const auto time_of = [](const std::string& body) {
    float ms = 0;
    run(body, &ms);
    return ms;
  };
  const std::string product = "ptx::mma_bf16(sums, {0, 0, 0, 0}, {0, 0});";
  const std::string start = "out[at] = 0; float sums[4] = {};";
  const float none = time_of(start), one = time_of(start + product);
  EXPECT_GT(none, 0);
  EXPECT_GT(one, none);
  EXPECT_EQ(time_of(start + product), one) << "whatever else the CPU does";
  EXPECT_FLOAT_EQ(time_of(start + product + product) - none, 2 * (one - none));
}

TEST_F(Emulation, AMemoryBarrierCountsArrivals) {
  const std::string start =
      "if (thread == 0) ptx::init_barrier(512, 64); __syncthreads();\n"
      "words[thread] = thread;\n";
  const std::string end = "out[at] = words[63 - thread];";
  EXPECT_EQ(run(start + "ptx::arrive(512); ptx::wait_for_phase(512, 0);" + end), mirrored());
  EXPECT_NE(run(start + "ptx::wait_for_phase(512, 1); ptx::arrive(512);" + end), mirrored())
      << "the phase before the first is over";
  EXPECT_THROW(run(start + "if (thread > 0) ptx::arrive(512); ptx::wait_for_phase(512, 0);"),
               driver::CudaError);
  EXPECT_THROW(run("ptx::arrive(512);"), driver::CudaError) << "not initialised";
}

TEST_F(Emulation, ABlockReachesTheOneBesideIt) {
  const auto run_pairs = [](const std::string& body) { return run(body, nullptr, 2); };
  // Each sends its numbers to the other, and reads what that one has sent.
  const std::string start =
      "const int other = 1 - blockIdx.x % 2;\n"
      "if (thread == 0) { ptx::init_barrier(1000, 1); ptx::fence_barrier_init(); }\n"
      "ptx::store_word(thread * 4, thread + 1000 * other);\n"
      "ptx::fence_async_proxy();\n";
  const std::string meet = "__syncthreads(); ptx::sync_cluster();\n";
  const std::string send =
      "if (thread == 0) {\n"
      "  ptx::arrive_and_expect(1000, 256);\n"
      "  ptx::copy_to_block(512, other, 0, 256, 1000);\n"
      "}\n";
  const std::string end =
      "ptx::wait_for_phase(1000, 0); out[at] = words[128 + 63 - thread] - 1000 * (1 - other);";
  EXPECT_EQ(run_pairs(start + meet + send + end + meet), mirrored());
  EXPECT_THROW(run_pairs(start + "__syncthreads();" + send + end), driver::CudaError)
      << "before the other has barriers, or when it has ended";
  EXPECT_THROW(run(start + meet + send + end), driver::CudaError) << "there is no other block";
  EXPECT_EQ(run_pairs(start + meet +
                      "if (thread == 0) ptx::arrive_in_block(1000, other);\n"
                      "ptx::wait_for_phase(1000, 0); out[at] = 63 - thread;" +
                      meet),
            mirrored());
}

TEST_F(Emulation, ANamedBarrierHoldsThoseThatWaitForIt) {
  EXPECT_EQ(run("words[thread] = thread; ptx::sync_threads(1, 64); out[at] = words[63 - thread];"),
            mirrored());
  // The second warp goes on; the first reads what it wrote.
  EXPECT_EQ(run("words[thread] = thread;\n"
                "if (thread < 32) ptx::sync_threads(1, 64); else ptx::arrive_threads(1, 64);\n"
                "out[at] = thread < 32 ? words[63 - thread] : 63 - thread;"),
            mirrored());
  EXPECT_EQ(run("const bool any = ptx::any_of_threads(2, 64, thread == 5);\n"
                "const bool none = ptx::any_of_threads(2, 64, false);\n"
                "out[at] = any && !none ? 63 - thread : 0;"),
            mirrored());
  EXPECT_THROW(run("if (thread < 32) ptx::sync_threads(1, 64);"), driver::CudaError);
  EXPECT_THROW(run("ptx::sync_threads(1, thread < 32 ? 64 : 32);"), driver::CudaError);
}

}  // namespace
}  // namespace strobe::cuda
