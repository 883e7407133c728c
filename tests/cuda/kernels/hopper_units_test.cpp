// Hopper's units that copy tensors and multiply matrices, through the functions that kernels use:
// on a GPU that has them, or on the emulated one, which must also notice what kernels do wrong.

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "cuda/driver/launch.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/stream.h"
#include "cuda/driver/tensor_map.h"
#include "cuda/gpu.h"
#include "cuda/jit/build.h"
#include "device/narrow_end.cuh"

namespace strobe::cuda {
namespace {

// Tensors of so many rows, in boxes of 64 x 64 whose rest is zero.
constexpr int kRows = 50;
constexpr int kColumns = 40;
constexpr int kBox = 64;
constexpr int kBoxBytes = kBox * kBox * 2;

using Matrix = std::array<std::array<float, kBox>, kBox>;

/// Whole numbers, so few and small that every sum is one of bf16.
Matrix some_matrix(unsigned seed) {
  Matrix matrix{};
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      seed = seed * 1664525 + 1013904223;
      matrix[r][c] = static_cast<float>(static_cast<int>(seed >> 24) % 3 - 1);
    }
  }
  return matrix;
}

std::vector<std::uint16_t> tensor_of(const Matrix& matrix) {
  std::vector<std::uint16_t> tensor;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c)
      tensor.push_back(
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(matrix[r][c]) >> 16));
  }
  return tensor;
}

class HopperUnits : public test::OnGpuWithCompiler {
 protected:
  void SetUp() override {
    test::OnGpuWithCompiler::SetUp();
    if (IsSkipped()) return;
    if (device().capability_major() != 9) GTEST_SKIP() << "no Hopper";
  }

  struct Result {
    Matrix sums{};
    std::vector<std::uint16_t> stored{};
  };

  /// Runs `body` in a warpgroup: `first` and `second` are the tensors' maps, `target` is where a
  /// box is stored, those that are narrow copy boxes of 16 columns; tiles A, B and C of shared
  /// memory, and a barrier, which is initialised. `out` is zero, and gets the sums at the end.
  Result run(const std::string& body) const {
    const std::string source =
        "#include \"config.cuh\"\n"
        "#include \"device/accumulator.cuh\"\n"
        "#include \"device/element.cuh\"\n"
        "#include \"device/ptx/mbarrier.cuh\"\n"
        "#include \"device/ptx/tensor_copy.cuh\"\n"
        "#include \"device/ptx/turns.cuh\"\n"
        "#include \"device/ptx/warpgroup.cuh\"\n"
        "#include \"device/ptx/wgmma.cuh\"\n"
        "#include \"device/swizzled_tile.cuh\"\n"
        "\nnamespace strobe::cuda {\n"
        "using Box = SwizzledTile<64, 64>;\n"
        "using NarrowBox = SwizzledTile<64, 16, true>;\n"
        "extern \"C\" __global__ void body(const __grid_constant__ TensorMap first,\n"
        "    const __grid_constant__ TensorMap second, const __grid_constant__ TensorMap target,\n"
        "    const __grid_constant__ TensorMap narrow_first,\n"
        "    const __grid_constant__ TensorMap narrow_second,\n"
        "    const __grid_constant__ TensorMap narrow_target,\n"
        "    float* out) {\n"
        "  extern __shared__ __align__(1024) uint4 memory[];\n"
        "  constexpr auto policy = ptx::CachePolicy::evict_first;\n"
        "  constexpr auto half = ptx::HalfType::bf16;\n"
        "  using ptx::RightOrder;\n"
        "  const Word A = ptx::shared_address(memory), B = A + 8192, C = B + 8192;\n"
        "  const Word barrier = C + 8192;\n"
        "  const bool one = threadIdx.x == 0;\n"
        "  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 16;\n"
        "  if (one) { ptx::init_barrier(barrier, 1); ptx::fence_barrier_init(); }\n"
        "  __syncthreads();\n"
        "  Accumulator<1, 8> sums;\n"
        "  sums.clear();\n" +
        body +
        "  for (int r = 0; r < 2; ++r)\n"
        "    for (int c = 0; c < 8; ++c)\n"
        "      for (int i = 0; i < 2; ++i)\n"
        "        out[(threadIdx.x / 32 * 16 + sums.row_index(r)) * 64 + sums.column_index(c) + i] "
        "=\n"
        "            sums.at(r, c, i);\n"
        "}\n}\n";
    const jit::DiskCache nowhere(testing::TempDir() + "strobe_hopper_units_test");
    const auto built = jit::build({.name = "body", .source = "body.cu", .entries = {"body"}},
                                  source, jit::Architecture::of(device()), nowhere);
    const driver::ContextScope scope(device());
    const driver::Module module(device(), built.binary.cubin);
    const driver::Stream stream(device());
    const std::size_t bytes = std::size_t{kRows} * kColumns * 2;
    const driver::DeviceMemory first(device(), bytes), second(device(), bytes);
    const driver::DeviceMemory target(device(), bytes), sums(device(), sizeof(Matrix));
    const auto upload = [&](const driver::DeviceMemory& to, const Matrix& matrix) {
      const auto tensor = tensor_of(matrix);
      driver::copy_async(to.data(), tensor.data(), bytes, stream.get());
      stream.synchronize();
    };
    upload(first, some_matrix(1));
    upload(second, some_matrix(2));
    driver::fill_async(target.data(), 0x55, bytes, stream.get());
    driver::fill_async(sums.data(), 0, sizeof(Matrix), stream.get());
    driver::launch(module.function("body"),
                   {.block = {.x = 128}, .dynamic_shared_bytes = 3 * kBoxBytes + 1024},
                   stream.get(), map_of(first), map_of(second), map_of(target),
                   narrow_map_of(first), narrow_map_of(second), narrow_map_of(target),
                   static_cast<float*>(sums.data()));
    Result result;
    result.stored.resize(std::size_t{kRows} * kColumns);
    driver::copy_async(&result.sums, sums.data(), sizeof result.sums, stream.get());
    driver::copy_async(result.stored.data(), target.data(), bytes, stream.get());
    stream.synchronize();
    return result;
  }

  static driver::TiledTensor tiled(const void* data) {
    return {.data = data,
            .rank = 4,
            .sizes = {kColumns, kRows, 1, 1},
            .strides = {kColumns * 2, 16, 16},
            .box = {kBox, kBox, 1, 1},
            .swizzle = abi::TensorMapSwizzle::bytes128};
  }
  static abi::TensorMap map_of(const driver::DeviceMemory& memory) {
    return driver::encode(tiled(memory.data()));
  }
  static abi::TensorMap narrow_map_of(const driver::DeviceMemory& memory) {
    auto tensor = tiled(memory.data());
    tensor.box[0] = kNarrowColumns;
    tensor.swizzle = abi::TensorMapSwizzle::bytes32;
    return driver::encode(tensor);
  }

  static constexpr const char* kLoad =
      "if (one) {\n"
      "  ptx::arrive_and_expect(barrier, 16384);\n"
      "  ptx::load_box(A, first, BoxOrigin{{0, 0, 0, 0}}, barrier, policy);\n"
      "  ptx::load_box(B, second, BoxOrigin{{0, 0, 0, 0}}, barrier, policy);\n"
      "}\n";
  static constexpr const char* kArrived = "ptx::wait_for_phase(barrier, 0);\n";
  static constexpr const char* kFence = "ptx::wgmma_fence();\n";
  static constexpr const char* kTransposed =
      "for (int step = 0; step < 4; ++step)\n"
      "  ptx::wgmma<half, RightOrder::inner>(sums.tile[0], Box::along_columns(A, step),\n"
      "                                      Box::along_columns(B, step), step > 0);\n";
  static constexpr const char* kDone =
      "ptx::wgmma_commit(); ptx::wgmma_wait<0>(); ptx::pin(sums.tile[0]);\n";

  /// Of `count` elements of each row from `begin` on, or of each column.
  static Matrix product(bool transposed, int begin = 0, int count = kBox) {
    const Matrix a = some_matrix(1);
    const Matrix b = some_matrix(2);
    Matrix sums{};
    for (int r = 0; r < kBox; ++r) {
      for (int c = 0; c < kBox; ++c) {
        for (int i = begin; i < begin + count; ++i)
          sums[r][c] += a[r][i] * (transposed ? b[c][i] : b[i][c]);
      }
    }
    return sums;
  }
};

/// What only the emulation tells.
class EmulatedHopperUnits : public HopperUnits {
 protected:
  void SetUp() override {
    if (std::getenv("STROBE_EMULATED_GPU") == nullptr) {
      GTEST_SKIP() << "STROBE_EMULATED_GPU is not set: see tests/cuda/emulated_gpu";
    }
    HopperUnits::SetUp();
  }

  /// Fails, or gives something else.
  void expect_wrong(const std::string& body, const Matrix& right) {
    try {
      EXPECT_NE(run(body).sums, right) << body;
    } catch (const driver::CudaError&) {
    }
  }
};

TEST_F(HopperUnits, MultiplyWithTheTranspose) {
  EXPECT_EQ(run(std::string(kLoad) + kArrived + kFence + kTransposed + kDone).sums, product(true));
}

TEST_F(HopperUnits, MultiplyNarrowPanels) {
  EXPECT_EQ(
      run("if (one) {\n"
          "  ptx::arrive_and_expect(barrier, 2 * NarrowBox::kCopiedBytes);\n"
          "  ptx::load_box(A, narrow_first, BoxOrigin{{16, 0, 0, 0}}, barrier, policy);\n"
          "  ptx::load_box(B, narrow_second, BoxOrigin{{16, 0, 0, 0}}, barrier, policy);\n"
          "}\n" +
          std::string(kArrived) + kFence +
          "ptx::wgmma<half, RightOrder::inner>(sums.tile[0], NarrowBox::along_columns(A, 0),\n"
          "                                    NarrowBox::along_columns(B, 0), false);\n" +
          kDone)
          .sums,
      product(true, 16, 16));
}

TEST_F(HopperUnits, StoreNarrowPanels) {
  const auto result =
      run("for (int chunk = 0; threadIdx.x < 64 && chunk < 2; ++chunk) {\n"
          "  const Word word = 0x10001 * (2 * threadIdx.x + chunk);\n"
          "  ptx::store_chunk(C + NarrowBox::chunk_offset(threadIdx.x, chunk),\n"
          "                   {word, word, word, word});\n"
          "}\n"
          "ptx::fence_async_proxy();\n"
          "ptx::sync_threads(1, 128);\n"
          "if (one) {\n"
          "  ptx::store_box(narrow_target, {{16, 0, 0, 0}}, C);\n"
          "  ptx::commit_stores();\n"
          "  ptx::wait_for_stores();\n"
          "}\n");
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const bool stored = c >= 16 && c < 32;
      ASSERT_EQ(result.stored[r * kColumns + c], stored ? 2 * r + (c - 16) / 8 : 0x5555)
          << r << ", " << c;
    }
  }
}

TEST_F(HopperUnits, MultiplyAlongRows) {
  EXPECT_EQ(
      run(std::string(kLoad) + kArrived + kFence +
          "for (int step = 0; step < 4; ++step)\n"
          "  ptx::wgmma<half, RightOrder::columns>(sums.tile[0], Box::along_columns(A, step),\n"
          "                                        Box::along_rows(B, step), true);\n" +
          kDone)
          .sums,
      product(false));
}

TEST_F(HopperUnits, MultiplyWhatIsInRegisters) {
  const Matrix first = product(true);
  const Matrix b = some_matrix(2);
  Matrix expected{};
  for (int r = 0; r < kBox; ++r) {
    for (int c = 0; c < kBox; ++c) {
      for (int i = 0; i < kBox; ++i) expected[r][c] += first[r][i] * b[i][c];
    }
  }
  EXPECT_EQ(run(std::string(kLoad) + kArrived + kFence + kTransposed + kDone +
                "Word left[4][4];\n"
                "for (int step = 0; step < 4; ++step)\n"
                "  for (int i = 0; i < 4; ++i) {\n"
                "    const float(&pair)[4] = sums.tile[0][2 * step + i / 2];\n"
                "    left[step][i] = Bf16::pack(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);\n"
                "  }\n" +
                kFence +
                "for (int step = 0; step < 4; ++step)\n"
                "  ptx::wgmma<half, RightOrder::columns>(sums.tile[0], left[step],\n"
                "                                        Box::along_rows(B, step), step > 0);\n" +
                kDone)
                .sums,
            expected);
}

constexpr const char* kStage =
    "for (int step = 0; step < 4; ++step) {\n"
    "  const float(&l)[4] = sums.tile[0][2 * step];\n"
    "  const float(&r)[4] = sums.tile[0][2 * step + 1];\n"
    "  ptx::store_matrices(C + Box::chunk_offset(row, 2 * step + threadIdx.x / 16 % 2),\n"
    "                      {Bf16::pack(l[0], l[1]), Bf16::pack(l[2], l[3]),\n"
    "                       Bf16::pack(r[0], r[1]), Bf16::pack(r[2], r[3])});\n"
    "}\n";
constexpr const char* kStore =
    "ptx::sync_threads(1, 128);\n"
    "if (one) { ptx::store_box(target, {{0, 0, 0, 0}}, C); ptx::commit_stores(); }\n";

TEST_F(HopperUnits, StoreWhatIsInsideOfTheTensor) {
  const auto result = run(std::string(kLoad) + kArrived + kFence + kTransposed + kDone + kStage +
                          "ptx::fence_async_proxy();\n" + kStore +
                          "if (one) ptx::wait_until_stores_have_read();\n");
  EXPECT_EQ(result.stored, tensor_of(product(true)));
}

TEST_F(HopperUnits, StoreTransposed) {
  const auto result =
      run(std::string(kLoad) + kArrived + kFence + kTransposed + kDone +
          "const int lane = threadIdx.x % 32;\n"
          "for (int step = 0; step < 4; ++step) {\n"
          "  const float(&l)[4] = sums.tile[0][2 * step];\n"
          "  const float(&r)[4] = sums.tile[0][2 * step + 1];\n"
          "  const int column = 16 * step + lane / 16 * 8 + lane % 8;\n"
          "  ptx::store_matrices_transposed(\n"
          "      C + Box::chunk_offset(column, threadIdx.x / 32 * 2 + lane / 8 % 2),\n"
          "      {Bf16::pack(l[0], l[1]), Bf16::pack(l[2], l[3]),\n"
          "       Bf16::pack(r[0], r[1]), Bf16::pack(r[2], r[3])});\n"
          "}\n"
          "ptx::fence_async_proxy();\n" +
          kStore + "if (one) ptx::wait_until_stores_have_read();\n");
  const Matrix sums = product(true);
  Matrix expected{};
  for (int r = 0; r < kBox; ++r) {
    for (int c = 0; c < kBox; ++c) expected[r][c] = sums[c][r];
  }
  EXPECT_EQ(result.stored, tensor_of(expected));
}

// Floats 0, 1, 2 ... in tiles B and C.
constexpr const char* kCount =
    "for (int i = threadIdx.x; i < 1024; i += 128) {\n"
    "  const auto word = [&](int e) { return __float_as_uint(4 * i + e); };\n"
    "  ptx::store_chunk(B + i * 16, {word(0), word(1), word(2), word(3)});\n"
    "}\n";
constexpr const char* kAdd =
    "__syncthreads();\n"
    "if (one) {\n"
    "  ptx::add_floats(out, B, 16384);\n"
    "  ptx::commit_stores();\n"
    "  ptx::add_floats(out + 32, B, 128);\n"
    "  ptx::commit_stores();\n"
    "  ptx::wait_for_stores();\n"
    "}\n"
    "__syncthreads();\n"
    "for (int r = 0; r < 2; ++r)\n"
    "  for (int c = 0; c < 8; ++c)\n"
    "    for (int i = 0; i < 2; ++i)\n"
    "      sums.at(r, c, i) = out[(threadIdx.x / 32 * 16 + sums.row_index(r)) * 64 +\n"
    "                             sums.column_index(c) + i];\n";

TEST_F(HopperUnits, AddFloats) {
  Matrix expected{};
  for (int r = 0; r < kBox; ++r) {
    for (int c = 0; c < kBox; ++c) {
      expected[r][c] = static_cast<float>(r * kBox + c + (r == 0 && c >= 32 ? c - 32 : 0));
    }
  }
  EXPECT_EQ(run(std::string(kCount) + "ptx::fence_async_proxy();\n" + kAdd).sums, expected);
}

constexpr const char* kCounter = "unsigned* const count = reinterpret_cast<unsigned*>(out);\n";

TEST_F(HopperUnits, WaitForTheirTurn) {
  EXPECT_NO_THROW(run(std::string(kCounter) + "if (one) {\n"
                                              "  ptx::wait_for_turn(count, 0);\n"
                                              "  ptx::pass_turn(count);\n"
                                              "  ptx::wait_for_turn(count, 1);\n"
                                              "  if (ptx::take_turn(count) != 1) __trap();\n"
                                              "  ptx::wait_for_turn(count, 2);\n"
                                              "}\n"
                                              "__syncthreads();\n"));
}

TEST_F(HopperUnits, RefuseTensorsTheyCannotCopy) {
  const driver::DeviceMemory memory(device(), 4096);
  const driver::ContextScope scope(device());
  EXPECT_NO_THROW(driver::encode(tiled(memory.data())));
  auto tensor = tiled(static_cast<char*>(memory.data()) + 8);
  EXPECT_THROW(driver::encode(tensor), driver::CudaError) << "address";
  tensor = tiled(memory.data());
  tensor.strides[0] = 72;
  EXPECT_THROW(driver::encode(tensor), driver::CudaError) << "stride";
  tensor = tiled(memory.data());
  tensor.box[1] = 257;
  EXPECT_THROW(driver::encode(tensor), driver::CudaError) << "box";
  tensor = tiled(memory.data());
  tensor.box[0] = 128;
  EXPECT_THROW(driver::encode(tensor), driver::CudaError) << "wider than the swizzle";
}

TEST_F(EmulatedHopperUnits, NoticeWhatIsMissingAroundProducts) {
  const std::string load = std::string(kLoad) + kArrived;
  EXPECT_THROW(run(load + kTransposed + kDone), driver::CudaError) << "a fence";
  EXPECT_THROW(run(load + kFence + kTransposed + "ptx::wgmma_wait<0>();"), driver::CudaError)
      << "the end of the group";
  EXPECT_THROW(run(load + kFence + kTransposed + "ptx::wgmma_commit();"), driver::CudaError)
      << "the wait";
  EXPECT_THROW(run(load + kFence + kTransposed + "sums.clear();\n" + kDone), driver::CudaError)
      << "hands off the sums";
  expect_wrong(std::string(kLoad) + kFence + kTransposed + kDone + kArrived, product(true));
}

TEST_F(EmulatedHopperUnits, NoticeWhatIsMissingAroundCopies) {
  const std::string staged = std::string(kLoad) + kArrived + kStage;
  EXPECT_THROW(run(staged + kStore + "if (one) ptx::wait_until_stores_have_read();\n"),
               driver::CudaError)
      << "the fence of the proxy";
  EXPECT_THROW(run(std::string(kCount) + kAdd), driver::CudaError) << "the same where it adds";
  EXPECT_THROW(run("if (one) { ptx::add_floats(out + 1, B, 16); ptx::commit_stores(); }\n"),
               driver::CudaError)
      << "multiples of 16 bytes";
  EXPECT_THROW(run(std::string(kCounter) + kCount +
                   "ptx::fence_async_proxy();\n"
                   "__syncthreads();\n"
                   "if (one) { ptx::add_floats(out + 4, B, 16); ptx::commit_stores();\n"
                   "ptx::wait_until_stores_have_read(); ptx::pass_turn(count); }\n"),
               driver::CudaError)
      << "the end of what comes before the next turn";
  EXPECT_THROW(run(std::string(kCounter) + "if (one) ptx::wait_for_turn(count, 1);\n"),
               driver::CudaError)
      << "the one before";
  EXPECT_THROW(run("if (one) { ptx::init_barrier(barrier + 8, 1);\n"
                   "ptx::arrive_and_expect(barrier + 8, 8192);\n"
                   "ptx::load_box(A, first, BoxOrigin{{0, 0, 0, 0}}, barrier + 8, policy);\n"
                   "ptx::wait_for_phase(barrier + 8, 0); }\n"),
               driver::CudaError)
      << "the fence of the barrier";
  EXPECT_THROW(run("if (one) { ptx::arrive_and_expect(barrier, 8200);\n"
                   "ptx::load_box(A, first, BoxOrigin{{0, 0, 0, 0}}, barrier, policy); }\n"
                   "ptx::wait_for_phase(barrier, 0);\n"),
               driver::CudaError)
      << "as many bytes as were announced";
}

}  // namespace
}  // namespace strobe::cuda
