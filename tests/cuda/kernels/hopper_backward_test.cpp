#include "cuda/kernels/hopper_backward/hopper_backward.h"

#include <bit>
#include <cmath>
#include <limits>

#include "cuda/driver/memory.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/flash/backward_pass.h"
#include "cuda/kernels/hopper_backward/variants.h"

namespace strobe::cuda::hopper_backward {
namespace {

const jit::Architecture kHopper{.major = 9, .minor = 0, .specific = true};

TEST(HopperBackward, EveryDimFitsTheMultiprocessor) {
  for (int dim = 8; dim <= kCandidates.back().dim; dim += 8) {
    const auto config =
        choose_hopper_backward({.dim = dim, .value_dim = dim, .window_right = true});
    SCOPED_TRACE(jit::configuration_text(description(config)));
    EXPECT_LE(shared_bytes(config), shared_memory_of(90).per_block);
  }
}

TEST(HopperBackward, AsksForNoMoreRegistersThanABlockBeginsWith) {
  for (const Candidate& candidate : kCandidates) {  // or it would wait for ever
    const HopperBackwardConfig config{{}, candidate.shape};
    EXPECT_LE(128 * (config.kProducerRegisters +
                     candidate.shape.warpgroups * config.consumer_registers()),
              config.threads() * config.registers())
        << variant_text(candidate.shape);
  }
}

TEST(HopperBackward, WarpgroupsOfEveryShapeHaveTheirSlices) {
  for (const auto& [softcap, alibi] : {std::pair(false, false), {true, false}, {true, true}}) {
    for (int dim = 8; dim <= kCandidates.back().dim; dim += 8) {
      for (const int value_dim : {8, 64, 72, dim, 256}) {
        const auto config = choose_hopper_backward(
            {.dim = dim, .value_dim = value_dim, .softcap = softcap, .alibi = alibi});
        const int slices = slice_count(config);
        EXPECT_EQ(slices % config.shape.slice_writers(), 0) << dim << ", " << value_dim;
        const int beyond = config.shape.block_queries > 64 ? 0 : (slices - 1) * 64;
        EXPECT_LT(beyond, key_columns(config.features)) << dim << ", " << value_dim;
        EXPECT_LE(shared_bytes(config), shared_memory_of(90).per_block) << dim << ", " << value_dim;
      }
    }
  }
}

TEST(HopperBackward, ABiasFitsBesideEveryShape) {
  for (const bool deterministic : {false, true}) {
    for (const bool per_query : {false, true}) {
      for (const bool causal : {false, true}) {
        for (int dim = 8; dim <= 256; dim += 8) {
          const auto config = choose_hopper_backward({.dim = dim,
                                                      .value_dim = dim,
                                                      .window_right = causal,
                                                      .bias = true,
                                                      .bias_per_query = per_query,
                                                      .deterministic = deterministic});
          EXPECT_TRUE(fits(config)) << jit::configuration_text(description(config));
        }
      }
    }
  }
}

TEST(HopperBackward, TakesWhatItWasMadeFor) {
  for (const char* problem :
       {"b1 sq128 h2 d64 bf16 bwd", "b2 sq5 sk3 h4 hk2 d128 fp16 causal bwd",
        "b1 sq9 h1 d8 bf16 bwd", "b1 sq9 h1 d256 bf16 bwd", "b1 sq128 h2 d64 bf16 w20:3 bwd",
        "b1 sq128 h2 d64 bf16 w1:0 bwd", "b1 sq128 h2 d64 bf16 sinks bwd",
        "lq9,3 lk9,3 h2 d64 bf16 bwd", "b1 sq128 h2 d64 bf16 cap1 alibi bwd",
        "b1 sq128 h2 d192 dv128 bf16 bwd", "b1 sq128 h2 d64 bf16 drop0.1 bwd",
        "b1 sq128 h2 d256 bf16 bias:hqk bwd", "b1 sq128 h2 d60 dv255 bf16 bwd"}) {
    EXPECT_TRUE(takes(Problem::parse(problem), kHopper)) << problem;
  }
  for (const char* problem :
       {"b1 sq128 h2 d64 fp32 bwd", "b1 sq128 h2 d257 bf16 bwd", "b1 sq128 h2 d264 bf16 bwd",
        "b1 sq128 sk1 h2 d64 bf16 bwd", "b1 sq128 h2 d64 dv264 bf16 bwd",
        "b1 sq128 h2 d64 bf16 w0:0 bwd", "b1 sq128 h2 d64 bf16 cap0.1 bwd",
        "b1 sq128 sk130 h2 d64 bf16 bias:k bwd", "b1 sq128 h2 d64 bf16"}) {
    EXPECT_FALSE(takes(Problem::parse(problem), kHopper)) << problem;
  }
  EXPECT_FALSE(takes(Problem::parse("b1 sq128 h2 d64 bf16 bwd"), {.major = 8, .minor = 0}));
}

TEST(HopperBackward, TakesTensorsWhoseRowsAreAligned) {
  alignas(16) static std::array<std::uint16_t, 4096> memory;
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {2, 8, 2, 64});
  const Tensors fine{
      .q = view, .k = view, .v = view, .dout = view, .dq = view, .dk = view, .dv = view};
  EXPECT_TRUE(Backward::takes({.dim = 64, .value_dim = 64}, fine));
  for (TensorView Tensors::*one : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::dout,
                                   &Tensors::dq, &Tensors::dk, &Tensors::dv}) {
    Tensors tensors = fine;
    (tensors.*one).data = memory.data() + 4;
    EXPECT_FALSE(Backward::takes({.dim = 64, .value_dim = 64}, tensors));
  }
}

TEST(HopperBackward, TakesHeadsWithinChunksOfRowsThatAreWhole) {
  const HopperBackwardFeatures features{.dim = 129, .value_dim = 129, .shifted = true};
  alignas(16) static std::array<std::uint16_t, 8> memory;  // of which nothing is read
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {2, 8, 8, 129});
  const Tensors fine{
      .q = view, .k = view, .v = view, .dout = view, .dq = view, .dk = view, .dv = view};
  EXPECT_TRUE(Backward::takes(features, fine));
  const auto with = [&](auto change) {
    Tensors tensors = fine;
    change(tensors);
    return Backward::takes(features, tensors);
  };
  EXPECT_TRUE(with([](Tensors& t) { t.dk.data = memory.data() + 1; })) << "is stored by elements";
  EXPECT_FALSE(with([](Tensors& t) { t.k.data = memory.data() + 1; })) << "rows begin there, too";
  EXPECT_FALSE(with([](Tensors& t) { t.dq.data = memory.data() + 1; })) << "not as queries lie";
  EXPECT_FALSE(with([](Tensors& t) { t.q.strides[2] = 136; })) << "who knows what lies between";
  EXPECT_FALSE(with([](Tensors& t) { t.q.strides[1] += 4; })) << "rows begin within chunks";
  EXPECT_FALSE(with([](Tensors& t) { t.v.strides[2] = 0; })) << "heads are broadcast";
  EXPECT_FALSE(with([](Tensors& t) { t.q.strides[0] = 0; })) << "sequences are broadcast";
}

TEST(HopperBackward, LeavesHeadsWhereTheyLieIfItCan) {
  const auto shifts = [](const char* text) { return Backward::shifts(Problem::parse(text), {}); };
  for (const char* problem : {"b1 sq128 h8 d129 bf16 bwd", "b1 sq128 h16 d129 fp16 causal bwd",
                              "b1 sq128 sk4096 h4 d130 bf16 bwd", "b1 sq128 h8 d201 dv97 bf16 bwd"})
    EXPECT_TRUE(shifts(problem)) << problem;
  for (const char* problem :
       {"b1 sq128 h8 d128 bf16 bwd", "b1 sq128 h7 d129 bf16 bwd", "b1 sq128 h8 hk4 d129 bf16 bwd",
        "b1 sq128 h8 d131 bf16 bwd", "b1 sq128 h8 d129 bf16 w9:0 bwd",
        "lq9,3 lk9,3 h8 d129 bf16 bwd", "b1 sq128 h8 d129 bf16 bias:hqk bwd",
        "b1 sq128 h8 d255 bf16 bwd", "b1 sq128 sk4096 h8 d65 bf16 bwd"})
    EXPECT_FALSE(shifts(problem)) << problem;
}

TEST(HopperBackward, ConvertsShortHeadsWhileTheyAreInTheCache) {
  const auto finishes = [](const char* text) {
    const auto constants = jit::configuration_text(describe(Problem::parse(text), {}));
    return constants.find("kFinishes") != std::string::npos;
  };
  for (const char* problem : {"b1 sq2048 h8 d128 bf16 bwd", "b1 sq4096 h8 d64 bf16 causal bwd",
                              "b1 sq512 sk9999 h8 hk2 d128 bf16 bwd",
                              "b1 sq128 h8 d59 bf16 cap20 bwd", "b1 sq2048 h8 d129 bf16 bwd"})
    EXPECT_TRUE(finishes(problem)) << problem;
  for (const char* problem : {"b1 sq2049 h8 d128 bf16 bwd", "b1 sq1024 h12 hk4 d128 bf16 bwd",
                              "b1 sq512 h8 d129 bf16 causal bwd", "b1 sq512 h8 d129 bf16 cap20 bwd",
                              "b1 sq512 h8 d144 bf16 bwd", "b1 sq512 h8 d128 bf16 w9:0 bwd",
                              "lq9,3 lk9,3 h8 d64 bf16 bwd"})
    EXPECT_FALSE(finishes(problem)) << problem;
}

TEST(HopperBackward, ItsProductsOverlap) {
  if (!jit::found_nvrtc().missing.empty()) GTEST_SKIP() << jit::found_nvrtc().missing;
  // Where registers do not suffice, the assembler lets every product wait for the one before, and
  // only says so.
  for (const int dim : {64, 128, 129, 192, 256}) {
    for (const HopperBackwardFeatures& features : std::initializer_list<HopperBackwardFeatures>{
             {.dim = dim, .value_dim = dim},
             {.dim = dim,
             .value_dim = dim,
             .window_left = true,
             .window_right = true,
             .variable_length = true,
             .softcap = true,
             .alibi = dim > 128,
             .deterministic = true},
             {.dim = dim, .value_dim = dim, .window_right = true, .dropout = true},
             {.dim = dim,
             .value_dim = dim,
             .window_right = true,
             .bias = true,
             .bias_per_query = true}}) {
      HopperBackwardFeatures short_heads = features;
      short_heads.finishes = may_finish(features);
      const auto kernel = description(choose_hopper_backward(short_heads));
      for (const auto& resources : jit::build(kernel, kHopper).binary.resources) {
        EXPECT_FALSE(resources.serialized) << jit::configuration_text(kernel);
      }
    }
  }
}

TEST(HopperBackward, ProductsOfBlocksThatShareAMultiprocessorOverlapToo) {
  if (!jit::found_nvrtc().missing.empty()) GTEST_SKIP() << jit::found_nvrtc().missing;
  for (const int dim : {8, 64}) {
    for (const HopperBackwardFeatures& features : std::initializer_list<HopperBackwardFeatures>{
             {.dim = dim, .value_dim = dim, .finishes = true},
             {.dim = dim, .value_dim = dim, .window_right = true, .finishes = true},
             {.dim = dim,
             .value_dim = dim,
             .window_left = true,
             .window_right = true,
             .variable_length = true,
             .deterministic = true}}) {
      const auto config = parse_variant("64x64/3/1", features);
      ASSERT_TRUE(config);
      ASSERT_EQ(config->shape.blocks_at_a_time(), 2);
      const auto kernel = description(*config);
      for (const auto& resources : jit::build(kernel, kHopper).binary.resources) {
        EXPECT_FALSE(resources.serialized) << jit::configuration_text(kernel);
        EXPECT_EQ(resources.spill_store_bytes + resources.stack_bytes, 0);
      }
    }
  }
}

class HopperBackwardOnGpu : public test::OnGpuWithCompiler {
 protected:
  void SetUp() override {
    test::OnGpuWithCompiler::SetUp();
    if (!IsSkipped() && device().capability_major() != 9) GTEST_SKIP() << "no Hopper";
  }

  /// dq, dk and dv, one after the other, of a problem in bf16 with as many keys as queries. Queries
  /// are also its dout and output, keys its values. The LSE is 4.
  /// Sets `computed_again` if something was not finite.
  static std::vector<float> gradients_of(const Problem& problem, bool shifted,
                                         const std::vector<float>& queries,
                                         const std::vector<float>& keys,
                                         bool* computed_again = nullptr) {
    const driver::ContextScope scope(device());
    const Backward backward(device(), problem, {}, shifted);
    const driver::Stream stream(device());
    const auto upload = [&](const void* from, std::size_t bytes) {
      driver::DeviceMemory to(device(), bytes);
      driver::copy_async(to.data(), from, bytes, stream.get());
      stream.synchronize();
      return to;
    };
    const auto upload_halves = [&](const std::vector<float>& numbers) {
      std::vector<std::uint16_t> halves;
      for (const float x : numbers)
        halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16));
      return upload(halves.data(), halves.size() * 2);
    };
    const std::vector<float> lse(static_cast<std::size_t>(problem.heads * problem.seqlen_q), 4.0F);
    const std::size_t bytes = queries.size() * 2;
    const driver::DeviceMemory q = upload_halves(queries), kv = upload_halves(keys),
                               there_lse = upload(lse.data(), lse.size() * sizeof(float)),
                               dq(device(), bytes), dk(device(), bytes), dv(device(), bytes),
                               workspace(device(),
                                         Backward::workspace_bytes(device(), problem, {}, shifted));
    constexpr strobe::Device kThere{.kind = strobe::Device::Kind::cuda};
    const auto view = [&](const driver::DeviceMemory& memory) {
      return TensorView::contiguous(memory.data(), DType::bf16,
                                    {1, problem.seqlen_q, problem.heads, problem.dim}, kThere);
    };
    const Tensors tensors{
        .q = view(q),
        .k = view(kv),
        .v = view(kv),
        .out = view(q),
        .lse = TensorView::contiguous(there_lse.data(), DType::fp32,
                                      {1, problem.heads, problem.seqlen_q}, kThere),
        .dout = view(q),
        .dq = view(dq),
        .dk = view(dk),
        .dv = view(dv)};
    EXPECT_TRUE(backward.takes(tensors));
    backward.run(tensors, workspace.data(), stream.get());
    if (computed_again != nullptr) {
      std::uint32_t count = 0;
      driver::copy_async(&count, static_cast<char*>(workspace.data()) + backward.not_finite_at(),
                         sizeof(count), stream.get());
      stream.synchronize();
      *computed_again = count != 0;
    }
    std::vector<float> numbers;
    for (const auto* memory : {&dq, &dk, &dv}) {
      std::vector<std::uint16_t> halves(queries.size());
      driver::copy_async(halves.data(), memory->data(), bytes, stream.get());
      stream.synchronize();
      for (const std::uint16_t x : halves)
        numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
    }
    return numbers;
  }

  /// Something for every element, and `odd` where `is_odd` of its index.
  template <class IsOdd>
  static std::vector<float> operand(std::size_t elements, float odd, IsOdd is_odd) {
    std::vector<float> numbers;
    for (std::size_t i = 0; i < elements; ++i)
      numbers.push_back(is_odd(i) ? odd : static_cast<float>(i * 7 % 11) / 8 - 0.5F);
    return numbers;
  }

  static constexpr std::array kNoNumbers = {std::numeric_limits<float>::quiet_NaN(),
                                            std::numeric_limits<float>::infinity()};
};

TEST_F(HopperBackwardOnGpu, WhatAMaskHidesMayBeAnything) {
  constexpr std::size_t kLength = 130;
  constexpr std::size_t kDim = 64;
  constexpr std::size_t kElements = kLength * kDim;
  const Problem problem{.pass = Pass::backward, .seqlen_q = kLength, .dim = kDim, .causal = true};
  // Of queries and dout, the first row holds `odd`, which sees the first key alone; of keys and
  // values the last one, which the last query alone sees.
  const auto gradients_with = [&](float odd) {
    return gradients_of(
        problem, false, operand(kElements, odd, [](std::size_t i) { return i / kDim == 0; }),
        operand(kElements, odd, [](std::size_t i) { return i / kDim == kLength - 1; }));
  };
  const std::vector<float> expected = gradients_with(0);
  for (const float odd : kNoNumbers) {
    const std::vector<float> output = gradients_with(odd);
    for (std::size_t i = 0; i < 3 * kElements; ++i) {
      const std::size_t row = i % kElements / kDim;
      if (row == 0 || row == kLength - 1) continue;
      ASSERT_NEAR(output[i], expected[i], 4e-2) << "dq, dk, dv: " << i / kElements << ", " << row;
    }
  }
}

TEST_F(HopperBackwardOnGpu, WhatIsFiniteIsNotComputedAgain) {
  // Of what is multiplied before anything has been loaded, or a block behind, nothing must stay.
  for (const char* text :
       {"b1 sq130 h1 d64 bf16 causal bwd", "b1 sq130 h1 d128 bf16 bwd", "b1 sq130 h1 d136 bf16 bwd",
        "b1 sq130 h1 d128 bf16 drop0.1 bwd", "b1 sq130 h1 d192 bf16 causal bwd",
        "b1 sq130 h1 d256 bf16 bwd", "b1 sq130 h1 d256 bf16 drop0.1 bwd"}) {
    const Problem problem = Problem::parse(text);
    const std::vector<float> numbers =
        operand(static_cast<std::size_t>(problem.seqlen_q * problem.dim), 0,
                [](std::size_t) { return false; });
    bool computed_again = true;
    gradients_of(problem, false, numbers, numbers, &computed_again);
    EXPECT_FALSE(computed_again) << text;
  }
}

TEST_F(HopperBackwardOnGpu, ItsWorkspaceIsDqAndItsStatistics) {
  // And a few numbers for each head and block of queries.
  for (const bool deterministic : {false, true}) {
    for (std::int64_t dim = 8; dim <= 256; dim += 8) {
      const Problem problem{
          .pass = Pass::backward, .batch = 2, .seqlen_q = 1024, .heads = 3, .dim = dim};
      const std::int64_t rows = problem.heads * problem.total_q();
      const auto most = static_cast<std::size_t>(
          rows * (dim * 4 + static_cast<std::int64_t>(sizeof(RowStatistics)) + 1));
      EXPECT_LE(
          Backward::workspace_bytes(device(), problem, {.deterministic = deterministic}, false),
          most)
          << "dim " << dim;
    }
  }
}

TEST_F(HopperBackwardOnGpu, ItsWorkspaceServesThePortableKernels) {
  // Gradients may come that only these take, whatever was planned.
  const driver::ContextScope scope(device());
  for (const char* text : {"b1 sq128 h2 d8 dv33 bf16 bwd", "b1 sq70 h8 d129 bf16 bwd"}) {
    const Problem problem = Problem::parse(text);
    EXPECT_GE(flash::BackwardPass(device(), problem, {}).workspace_bytes(),
              portable_backward::Backward(device(), problem, {}).workspace_bytes())
        << text;
  }
}

TEST_F(HopperBackwardOnGpu, HeadsThatShareChunksDoNotMindEachOther) {
  constexpr std::size_t kLength = 40;
  constexpr std::size_t kHeads = 8;
  for (const std::size_t dim : {17U, 21U}) {  // whose heads have a period, and have none
    const std::size_t elements = kLength * kHeads * dim;
    const Problem problem{.pass = Pass::backward,
                          .seqlen_q = kLength,
                          .heads = kHeads,
                          .dim = static_cast<std::int64_t>(dim)};
    const auto head_of = [&](std::size_t i) { return i % elements / dim % kHeads; };
    const auto gradients_with = [&](float odd) {
      const auto of_odd_head = [&](std::size_t i) { return head_of(i) == 3; };
      const std::vector<float> numbers = operand(elements, odd, of_odd_head);
      return gradients_of(problem, true, numbers, numbers);
    };
    const std::vector<float> expected = gradients_with(0);
    for (const float odd : kNoNumbers) {
      const std::vector<float> output = gradients_with(odd);
      for (std::size_t i = 0; i < 3 * elements; ++i) {
        if (head_of(i) != 3) {
          ASSERT_NEAR(output[i], expected[i], 4e-2)
              << "dq, dk, dv: " << i / elements << ", " << i % elements << " of " << dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace strobe::cuda::hopper_backward
