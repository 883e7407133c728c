#include "cuda/kernels/hopper_forward/hopper_forward.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "core/text.h"
#include "cuda/driver/launch.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/hopper_operands.h"

namespace strobe::cuda::hopper_forward {
namespace {

const jit::Architecture kHopper{.major = 9, .minor = 0, .specific = true};

void expect_to_fit(const HopperForwardConfig& config) {
  SCOPED_TRACE(jit::configuration_text(description(config)));
  EXPECT_LE(shared_bytes(config), shared_memory_of(90).per_block);
  EXPECT_EQ(config.shape.block_keys % 16, 0);
  // Asking for more registers than the block began with would wait for ever.
  const int asked =
      128 * (config.producer_registers() + config.shape.warpgroups * config.consumer_registers());
  EXPECT_LE(asked, config.threads() * config.registers_at_start());
  EXPECT_GE(config.producer_registers(), 24);
  EXPECT_LE(config.consumer_registers(), 240);
}

TEST(HopperForward, EveryDimFitsTheMultiprocessor) {
  for (int dim = 8; dim <= 256; dim += 8) {
    for (const int value_dim : {8, dim, 256}) {
      for (const bool causal : {false, true}) {
        for (const long long length : {1LL, 2000LL, 1LL << 20}) {
          expect_to_fit(
              choose_hopper_forward({.dim = dim, .value_dim = value_dim, .window_right = causal},
                                    {.queries = length, .keys = length, .heads = 64}));
        }
      }
    }
  }
}

TEST(HopperForward, TilesFollowTheWork) {
  const auto tile = [](int dim, bool causal, long long length, long long heads) {
    const HopperForwardConfig config =
        choose_hopper_forward({.dim = dim, .value_dim = dim, .window_right = causal},
                              {.queries = length, .keys = length, .heads = heads});
    return concat(config.block_queries(), "x", config.shape.block_keys);
  };
  EXPECT_EQ(tile(64, false, 512, 1024), "256x64");
  EXPECT_EQ(tile(64, false, 16384, 32), "192x128");
  EXPECT_EQ(tile(64, true, 512, 1024), "256x64");
  EXPECT_EQ(tile(64, true, 16384, 32), "192x128");
  EXPECT_EQ(tile(128, false, 512, 512), "128x128");
  EXPECT_EQ(tile(128, false, 16384, 16), "128x160");
  EXPECT_EQ(tile(64, false, 128, 1024), "128x128") << "larger ones would be half empty";
  EXPECT_EQ(tile(64, false, 2048, 8), "128x128") << "larger ones would be too few";
}

TEST(HopperForward, TilesOfAWindowFollowItsWidth) {
  const auto usual = [](const char* problem) {
    return variants(Problem::parse(problem), {}, 132).front();
  };
  EXPECT_EQ(usual("b4 s4096 h16 d128 bf16 w512:0"), "128x128/2/2");
  EXPECT_EQ(usual("b4 s4096 h16 d128 bf16 w512:200"), "128x128/2/2");
  EXPECT_EQ(usual("b4 s4096 h16 d128 bf16 w512:"), "128x160/1/2") << "half see all";
  EXPECT_EQ(usual("b4 s8192 h16 d128 bf16 w5000:0"), "128x160/1/2");
  EXPECT_EQ(usual("b4 s8192 h16 d128 bf16 w2147483647:0"), "128x160/1/2");
  EXPECT_EQ(usual("b4 s4096 h32 d64 bf16 w512:0"), "128x128/2/3");
  EXPECT_EQ(usual("b4 s4096 h32 d64 bf16 w3000:0"), "192x112/2/2");
}

TEST(HopperForward, TheReferenceIsFixedWhereThereAreManyKeys) {
  const auto choose = [](const HopperForwardFeatures& features, long long keys,
                         SoftmaxReference wanted = SoftmaxReference::automatic) {
    return choose_reference(features, {.queries = 1, .keys = keys, .heads = 1}, wanted);
  };
  const auto expect_from = [&](const HopperForwardFeatures& features, long long keys) {
    EXPECT_EQ(choose(features, keys), Reference::fixed) << features.dim;
    EXPECT_EQ(choose(features, keys - 1), Reference::running) << features.dim;
  };
  expect_from({.dim = 64, .value_dim = 64}, 512);
  expect_from({}, 1024);
  for (const int dim : {64, 128})  // who asks for tiles may multiply again in each of them
    expect_from({.dim = dim, .value_dim = dim, .window_right = true}, 2048);
  expect_from({.variable_length = true}, 2048);
  EXPECT_EQ(choose({.window_right = true, .variable_length = true}, 16384), Reference::fixed);
  EXPECT_EQ(choose({.dim = 96, .value_dim = 96}, 16384), Reference::running);
  EXPECT_EQ(choose({.dim = 192, .value_dim = 128}, 16384), Reference::running);
  const HopperForwardFeatures causal{.window_right = true};
  const auto work = [](long long keys) {
    return hopper_forward::Work{.queries = keys, .keys = keys, .heads = 256};
  };
  EXPECT_EQ(choose_reference(causal, work(1024)), Reference::fixed) << "handed out in pairs";
  EXPECT_EQ(choose_reference(causal, work(896)), Reference::running);
  EXPECT_EQ(choose({}, 16384, SoftmaxReference::running), Reference::running);
  EXPECT_EQ(choose({}, 1, SoftmaxReference::fixed), Reference::fixed);
  for (const auto wanted : {SoftmaxReference::automatic, SoftmaxReference::fixed}) {
    EXPECT_EQ(choose({.window_left = true}, 16384, wanted), Reference::running);
    EXPECT_EQ(choose({.softcap = true}, 16384, wanted), Reference::running);
  }
}

TileOrder order_of(const HopperForwardFeatures& features, long long length, long long heads) {
  return choose_hopper_forward(features, {.queries = length, .keys = length, .heads = heads})
      .shape.order;
}

TEST(HopperForward, PairsAreHandedOutWhereTheyFillTheGpu) {
  const HopperForwardFeatures causal{.window_right = true};
  EXPECT_EQ(order_of(causal, 16384, 16), TileOrder::in_pairs)
      << "8 rounds, the last not quite full";
  EXPECT_EQ(order_of(causal, 16384, 17), TileOrder::on_demand) << "9 rounds, the last half empty";
  EXPECT_EQ(order_of(causal, 1000, 2), TileOrder::on_demand) << "most have nothing to do";
  EXPECT_EQ(order_of({}, 16384, 16), TileOrder::one_by_one) << "all tiles take as long";
  EXPECT_EQ(order_of({.window_left = true, .window_right = true}, 16384, 16), TileOrder::one_by_one)
      << "so they do here";
  EXPECT_EQ(order_of({.window_right = true, .variable_length = true}, 16384, 16),
            TileOrder::on_demand);
  EXPECT_EQ(order_of({.variable_length = true}, 16384, 16), TileOrder::on_demand);
}

TEST(HopperForward, LargeHeadsOfFewTilesAreTakenAtOnce) {
  const HopperForwardFeatures causal{.dim = 256, .value_dim = 256, .window_right = true};
  EXPECT_EQ(order_of(causal, 512, 256), TileOrder::there_and_back);
  EXPECT_EQ(order_of(causal, 384, 512), TileOrder::there_and_back);
  EXPECT_EQ(order_of(causal, 1024, 128), TileOrder::in_pairs);
  EXPECT_EQ(order_of(causal, 512, 140), TileOrder::on_demand) << "the last round is empty";
  EXPECT_EQ(order_of({.window_right = true}, 512, 512), TileOrder::in_pairs);
  const Work of_others{.queries = 384, .keys = 384, .heads = 400, .multiprocessors = 100};
  EXPECT_EQ(choose_hopper_forward(causal, of_others).shape.order, TileOrder::in_pairs)
      << "some would always have the long ones";
}

TEST(HopperForward, ShortTilesOfDifferentLengthsHaveAThirdSlotOfKeysIfThereIsRoom) {
  const auto key_slots = [](int dim, bool causal, long long length) {
    const Work work{.queries = length, .keys = length, .heads = 4096};
    const HopperForwardConfig config =
        choose_hopper_forward({.dim = dim, .value_dim = dim, .window_right = causal}, work);
    EXPECT_TRUE(fits(config)) << dim;
    return config.shape.key_slots();
  };
  EXPECT_EQ(key_slots(256, true, 1024), 3);
  EXPECT_EQ(key_slots(256, true, 1025), 2);
  EXPECT_EQ(key_slots(256, false, 1024), 2);
  EXPECT_EQ(key_slots(128, true, 1024), 2);
  EXPECT_EQ(key_slots(64, true, 1024), 4) << "plenty";
}

TEST(HopperForward, WhatIsLeftAfterWholeRoundsOfPairsIsHandedOutAloneIfThatEndsEarlier) {
  EXPECT_EQ(tiles_in_pairs(512 * 4, 4, 132), 7 * 2 * 132);
  EXPECT_EQ(tiles_in_pairs(256 * 8, 8, 132), 7 * 2 * 132);
  EXPECT_EQ(tiles_in_pairs(256 * 4, 4, 132), 256 * 4) << "a long and a short one for some anyway";
  EXPECT_EQ(tiles_in_pairs(132 * 4, 4, 132), 132 * 4) << "nothing is left";
  EXPECT_EQ(tiles_in_pairs(1 << 29, 1 << 20, 132) % (1 << 20), 0) << "in no time";
}

TEST(HopperForward, OutputsLeaveSoThatTheNextQueriesNeedNotWait) {
  const auto way = [](const HopperForwardFeatures& features, long long length) {
    return choose_hopper_forward(features, {.queries = length, .keys = length, .heads = 4096})
        .shape.output_way;
  };
  for (const long long length : {512, 16384}) {
    EXPECT_EQ(way({}, length), OutputWay::by_slot);
    EXPECT_EQ(way({.dim = 64, .value_dim = 64, .window_right = true}, length), OutputWay::by_slot);
    EXPECT_EQ(way({.dim = 256, .value_dim = 256}, length), OutputWay::from_registers)
        << "there is no room for a slot";
    EXPECT_EQ(way({.dim = 192, .value_dim = 192}, length), OutputWay::from_registers);
  }
  EXPECT_EQ(way({.dim = 136, .value_dim = 136}, 1536), OutputWay::by_slot) << "rows end narrow";
  EXPECT_EQ(way({.dim = 250, .value_dim = 250}, 512), OutputWay::by_queries)
      << "rows are no whole chunks";
}

TEST(HopperForward, TakesWhatItWasMadeFor) {
  for (const char* problem :
       {"b1 sq128 h2 d64 bf16", "b2 sq5 sk3 h4 hk2 d128 fp16 causal", "b1 sq9 h1 d8 bf16",
        "b1 sq9 h1 d256 bf16", "b1 sq128 h2 d64 bf16 w20:3", "lq9,3 lk9,3 h2 d64 bf16",
        "b1 sq128 h2 d192 dv128 bf16", "b1 sq128 h2 d64 bf16 cap5",
        "b1 sq128 h2 d64 bf16 sinks alibi", "b1 sq127 sk128 h2 d64 bf16 bias:hqk",
        "b1 sq128 h2 d64 bf16 bias:k", "b1 sq128 h2 d64 bf16 drop0.2", "b1 sq9 h2 d60 bf16",
        "b1 sq9 h2 d1 dv255 fp16"}) {
    EXPECT_TRUE(takes(Problem::parse(problem), kHopper)) << problem;
  }
  for (const char* problem : {"b1 sq128 h2 d64 fp32", "b1 sq128 h2 d257 bf16",
                              "b1 sq128 h2 d264 bf16", "b1 sq128 h2 d64 dv257 bf16",
                              "b1 sq128 sk130 h2 d64 bf16 bias:hqk", "b1 sq128 h2 d64 bf16 bwd"}) {
    EXPECT_FALSE(takes(Problem::parse(problem), kHopper)) << problem;
  }
  const Problem problem = Problem::parse("b1 sq128 h2 d64 bf16");
  EXPECT_FALSE(takes(problem, {.major = 9, .minor = 0, .specific = false}));
  EXPECT_FALSE(takes(problem, {.major = 8, .minor = 0, .specific = false}));
  EXPECT_FALSE(takes(problem, {.major = 12, .minor = 0, .specific = false}));
}

TEST(HopperForward, TakesTensorsWhoseRowsAreAligned) {
  alignas(16) static std::array<std::uint16_t, 4096> memory;
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {2, 8, 2, 64});
  const Tensors fine{.q = view, .k = view, .v = view, .out = view};
  EXPECT_TRUE(Forward::takes({.dim = 64, .value_dim = 64}, fine));
  Tensors tensors = fine;
  tensors.k.data = memory.data() + 4;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors))
      << "a row begins between multiples of 16";
  tensors = fine;
  tensors.out.strides[1] = 132;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors)) << "the next one does";
  tensors = fine;
  tensors.v.strides[2] = 0;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors)) << "heads are broadcast";
  tensors = fine;
  tensors.k.shape[1] = 0;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors)) << "nothing to copy";
  tensors = fine;
  tensors.q.shape[0] = 1;
  tensors.q.strides[0] = 3;
  EXPECT_TRUE(Forward::takes({.dim = 64, .value_dim = 64}, tensors))
      << "the stride of an axis of one means nothing";
}

TEST(HopperForward, TakesHeadsWithinChunksOfRowsThatAreWhole) {
  const HopperForwardFeatures features{.dim = 129, .value_dim = 129, .shifted = true};
  alignas(16) static std::array<std::uint16_t, 8> memory;  // of which nothing is read
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {2, 8, 8, 129});
  const Tensors fine{.q = view, .k = view, .v = view, .out = view};
  EXPECT_TRUE(Forward::takes(features, fine));
  const auto with = [&](auto change) {
    Tensors tensors = fine;
    change(tensors);
    return Forward::takes(features, tensors);
  };
  EXPECT_TRUE(with([](Tensors& t) { t.out.data = memory.data() + 1; })) << "is stored by elements";
  EXPECT_FALSE(with([](Tensors& t) { t.k.data = memory.data() + 1; })) << "rows begin there, too";
  EXPECT_FALSE(with([](Tensors& t) { t.v.strides[2] = 136; })) << "who knows what lies between";
  EXPECT_FALSE(with([](Tensors& t) { t.q.strides[1] += 4; })) << "rows begin within chunks";
  EXPECT_FALSE(with([](Tensors& t) { t.q.strides[0] = 0; })) << "sequences are broadcast";
}

TEST(HopperForward, LeavesHeadsWhereTheyLieIfItCan) {
  const auto shifts = [](const char* text) { return Forward::shifts(Problem::parse(text), {}); };
  for (const char* problem :
       {"b1 sq128 h8 d129 bf16", "b1 sq9999 h16 d129 fp16 causal", "b1 sq128 h4 d130 bf16",
        "b1 sq128 h8 d201 dv97 bf16 w9:0", "b1 sq128 h8 d129 bf16 bias:hqk",
        "lq9,3 lk9,3 h8 d129 bf16", "b1 sq128 h2 d60 bf16"})
    EXPECT_TRUE(shifts(problem)) << problem;
  for (const char* problem :
       {"b1 sq128 h8 d128 bf16", "b1 sq128 h7 d129 bf16", "b1 sq128 h8 hk4 d129 bf16",
        "b1 sq128 h8 d131 bf16", "b1 sq128 h8 d123 bf16", "b1 sq128 sk4096 h8 d65 bf16"})
    EXPECT_FALSE(shifts(problem)) << problem;
}

TEST(HopperForward, HeadsBeginWithinSectorsIfTilesAreWideAndHeadsAllowIt) {
  const auto heads = [](const char* text) {
    const auto description = describe(Problem::parse(text), {}, 132);
    for (const auto& constant : description.constants) {
      if (constant.name == "kHeadUnit") return std::get<int>(constant.value);
    }
    return 0;
  };
  EXPECT_EQ(heads("b1 sq192 h16 d129 bf16"), 16);
  EXPECT_EQ(heads("b1 sq192 h32 d130 dv129 bf16 causal"), 16);
  EXPECT_EQ(heads("b1 sq192 h8 d129 bf16"), 8) << "after 8 heads the next begins in their midst";
  EXPECT_EQ(heads("b1 sq192 h16 d65 bf16"), 8) << "tiles are narrow";
  EXPECT_EQ(heads("b1 sq192 h16 d201 bf16"), 8) << "heads have no such period";
}

TEST(HopperForward, TakesABiasWhoseRowsAreAligned) {
  alignas(16) static std::array<std::uint16_t, 4096> memory;
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {2, 8, 2, 64});
  const Tensors fine{.q = view,
                     .k = view,
                     .v = view,
                     .out = view,
                     .bias = TensorView::contiguous(memory.data(), DType::bf16, {2, 2, 8, 16})};
  EXPECT_TRUE(Forward::takes({.dim = 64, .value_dim = 64}, fine));
  for (const std::size_t broadcast : {0U, 1U}) {
    Tensors tensors = fine;
    tensors.bias.strides[broadcast] = 0;
    EXPECT_TRUE(Forward::takes({.dim = 64, .value_dim = 64}, tensors))
        << "the same for every sequence, or head";
    EXPECT_EQ(bias_rows(tensors.bias).shape[broadcast == 0 ? 0 : 2], 1);
  }
  Tensors tensors = fine;
  tensors.bias.strides[2] = 0;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors))
      << "queries that are broadcast, of a bias that has them";
  tensors = fine;
  tensors.bias.strides[2] = 20;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors))
      << "a row begins between multiples of 16";
  tensors = fine;
  tensors.bias.data = memory.data() + 1;
  EXPECT_FALSE(Forward::takes({.dim = 64, .value_dim = 64}, tensors)) << "the first one does";
}

TEST(HopperForward, ItsProductsOverlap) {
  if (!jit::found_nvrtc().missing.empty()) GTEST_SKIP() << jit::found_nvrtc().missing;
  // Those that need the most registers; where these do not suffice, the assembler lets every
  // product wait for the one before, and only says so.
  const auto are_serialized = [](const HopperForwardConfig& config) {
    const auto all = jit::build(description(config), kHopper).binary.resources;
    return std::any_of(all.begin(), all.end(), [](const auto& r) { return r.serialized; });
  };
  constexpr Work kPlenty{.queries = 1 << 20, .keys = 1 << 20, .heads = 64};
  for (const int dim : {64, 128, 256}) {
    for (const HopperForwardFeatures& features : std::initializer_list<HopperForwardFeatures>{
             {.dim = dim, .value_dim = dim, .window_left = true, .window_right = true},
             {.dim = dim, .value_dim = dim, .window_right = true, .reference = Reference::fixed},
             {.dim = dim, .value_dim = dim, .softcap = true},
             {.dim = dim, .value_dim = dim, .bias = true, .bias_per_query = true},
             {.dim = dim, .value_dim = dim, .window_right = true, .dropout = true}}) {
      const auto config = choose_hopper_forward(features, kPlenty);
      SCOPED_TRACE(jit::configuration_text(description(config)));
      EXPECT_FALSE(are_serialized(config));
    }
  }
  const HopperForwardConfig too_much{{.dim = 128}, {.block_keys = 176, .warpgroups = 3}};
  EXPECT_TRUE(are_serialized(too_much)) << "as it says there";
}

/// The tiles of packed sequences as they are handed out: {first tile, sequence}, and at the end how
/// many there are.
using Order = std::vector<std::pair<unsigned, int>>;

class HopperForwardOnGpu : public test::OnGpuWithCompiler {
 protected:
  void SetUp() override {
    test::OnGpuWithCompiler::SetUp();
    if (!IsSkipped() && device().capability_major() != 9) GTEST_SKIP() << "no Hopper";
  }

  /// In bf16, of heads whose queries are 0.046 throughout. What keys and values hold is told by
  /// functions of the row and the column, of all heads, and a bias of keys by one of the key.
  template <class Keys, class Values>
  static std::vector<float> output_of(const Problem& problem, SoftmaxReference reference, Keys keys,
                                      Values values, const std::vector<float>& bias_of_keys = {}) {
    const driver::ContextScope scope(device());
    const PlanOptions options{.reference = reference};
    const bool shifted = Forward::shifts(problem, options);
    const Forward forward(device(), problem, options, shifted);
    const driver::Stream stream(device());
    const std::int64_t columns = problem.heads * problem.dim;
    const auto operand_of = [&](auto number) {
      std::vector<std::uint16_t> operand;
      for (std::int64_t row = 0; row < problem.keys(); ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          operand.push_back(upper_half(number(row, column)));
        }
      }
      return operand;
    };
    const std::vector<std::uint16_t> k_there = operand_of(keys), v_there = operand_of(values);
    std::vector<std::uint16_t> result(static_cast<std::size_t>(problem.seqlen_q * columns));
    const std::size_t q_bytes = result.size() * 2, k_bytes = k_there.size() * 2;
    const driver::DeviceMemory q(device(), q_bytes), k(device(), k_bytes), v(device(), k_bytes);
    const driver::DeviceMemory out(device(), q_bytes);
    std::vector<std::uint16_t> bias_there;
    for (const float x : bias_of_keys) bias_there.push_back(upper_half(x));
    const driver::DeviceMemory bias(device(), bias_there.size() * 2);
    driver::copy_async(bias.data(), bias_there.data(), bias_there.size() * 2, stream.get());
    const driver::DeviceMemory workspace(
        device(), Forward::workspace_bytes(device(), problem, options, shifted));
    driver::fill_async(q.data(), 0x3D, q_bytes, stream.get());
    driver::copy_async(k.data(), k_there.data(), k_bytes, stream.get());
    driver::copy_async(v.data(), v_there.data(), k_bytes, stream.get());
    const auto view = [&](const driver::DeviceMemory& memory, std::int64_t rows) {
      return TensorView::contiguous(memory.data(), DType::bf16,
                                    {1, rows, problem.heads, problem.dim},
                                    {.kind = strobe::Device::Kind::cuda});
    };
    Tensors tensors{.q = view(q, problem.seqlen_q),
                    .k = view(k, problem.keys()),
                    .v = view(v, problem.keys()),
                    .out = view(out, problem.seqlen_q)};
    if (problem.bias) {
      tensors.bias = TensorView::contiguous(bias.data(), DType::bf16, {1, 1, 1, problem.keys()},
                                            {.kind = strobe::Device::Kind::cuda});
    }
    forward.run(tensors, workspace.data(), stream.get());
    driver::copy_async(result.data(), out.data(), q_bytes, stream.get());
    stream.synchronize();
    std::vector<float> numbers;
    for (const std::uint16_t x : result)
      numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
    return numbers;
  }

  /// A number of 16 bits that is one of bf16.
  static std::uint16_t upper_half(float x) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  }

  static Order order_of(const std::vector<int>& cu_seqlens_q, const std::vector<int>& cu_seqlens_k,
                        int heads, int block_queries) {
    const driver::ContextScope scope(device());
    const driver::Stream stream(device());
    const std::size_t bytes = cu_seqlens_q.size() * sizeof(int);
    std::vector<SequenceTiles> order(cu_seqlens_q.size());
    const std::size_t order_bytes = order.size() * sizeof(SequenceTiles);
    unsigned next = 77;
    const driver::DeviceMemory q(device(), bytes), k(device(), bytes);
    const driver::DeviceMemory out(device(), order_bytes), counter(device(), sizeof next);
    driver::copy_async(q.data(), cu_seqlens_q.data(), bytes, stream.get());
    driver::copy_async(k.data(), cu_seqlens_k.data(), bytes, stream.get());
    const auto kernel = jit::load(device(), hopper_order());
    HopperOrderParams params{};
    params.cu_seqlens_q = static_cast<const int*>(q.data());
    params.cu_seqlens_k = static_cast<const int*>(k.data());
    params.order = static_cast<SequenceTiles*>(out.data());
    params.next_tile = static_cast<unsigned*>(counter.data());
    params.sequences = static_cast<int>(cu_seqlens_q.size()) - 1;
    params.heads = heads;
    params.block_queries = block_queries;
    driver::launch(kernel->function("hopper_order"), {.block = {.x = kHopperOrderThreads}},
                   stream.get(), params);
    driver::copy_async(order.data(), out.data(), order_bytes, stream.get());
    driver::copy_async(&next, counter.data(), sizeof next, stream.get());
    stream.synchronize();
    EXPECT_EQ(next, 0U);
    Order pairs;
    for (const SequenceTiles& tiles : order) pairs.emplace_back(tiles.first, tiles.sequence);
    return pairs;
  }
};

TEST_F(HopperForwardOnGpu, HandsOutTheLongestSequencesFirst) {
  // Five of 300, 0, 64, 65 and 1 queries and 10, 900, 70, 5000 and 0 keys.
  EXPECT_EQ(order_of({0, 300, 300, 364, 429, 430}, {0, 10, 910, 980, 5980, 5980}, 3, 64),
            (Order{{0, 3}, {6, 1}, {6, 2}, {9, 0}, {24, 4}, {27, 5}}));
}

TEST_F(HopperForwardOnGpu, HandsOutEverySequenceOnce) {
  constexpr int kSequences = 1000;  // more than there are threads
  std::vector<int> q{0}, k{0};
  for (int i = 0; i < kSequences; ++i) {
    q.push_back(q.back() + i % 7);
    k.push_back(k.back() + i * 37 % 501);
  }
  const Order order = order_of(q, k, 2, 4);
  std::vector<int> seen(kSequences, 0);
  unsigned first = 0;
  int longest = 0;
  for (std::size_t place = kSequences; place-- > 0;) {
    const auto sequence = static_cast<std::size_t>(order[place].second);
    ++seen.at(sequence);
    const int keys = k[sequence + 1] - k[sequence];
    EXPECT_GE(keys, longest * 3 / 4) << "a quarter of a power of two is the same length";
    longest = std::max(longest, keys);
  }
  for (std::size_t place = 0; place < kSequences; ++place) {
    const auto sequence = static_cast<std::size_t>(order[place].second);
    EXPECT_EQ(order[place].first, first);
    first += 2 * static_cast<unsigned>((q[sequence + 1] - q[sequence] + 3) / 4);
  }
  EXPECT_EQ(seen, std::vector<int>(kSequences, 1));
  EXPECT_EQ(order.back(), std::pair(first, kSequences));
}

TEST_F(HopperForwardOnGpu, WhatAMaskHidesMayBeAnything) {
  const Problem problem{.seqlen_q = 150, .dim = 64, .causal = true};
  // The last key, which only the last query sees, holds `last`.
  const auto output_with = [&](float last) {
    const auto number = [last](std::int64_t row, std::int64_t column) {
      return row == 149 ? last : static_cast<float>((row * 64 + column) * 7 % 11) / 8 - 0.5F;
    };
    return output_of(problem, SoftmaxReference::running, number, number);
  };
  const std::vector<float> expected = output_with(0);
  for (const float last :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> output = output_with(last);
    for (std::size_t i = 0; i < 149 * 64; ++i)
      ASSERT_NEAR(output[i], expected[i], 4e-3) << i / 64 << ", " << i % 64;
    for (std::size_t i = 149 * 64; i < output.size(); ++i)
      ASSERT_FALSE(std::isfinite(output[i])) << i % 64;
  }
}

TEST_F(HopperForwardOnGpu, HeadsThatShareChunksDoNotMindEachOther) {
  constexpr std::int64_t kDim = 17;
  constexpr std::int64_t kHeads = 8;
  const auto head_of = [](std::int64_t column) { return column / kDim; };
  for (const bool causal : {false, true}) {
    const Problem problem{.seqlen_q = 70, .heads = kHeads, .dim = kDim, .causal = causal};
    ASSERT_TRUE(Forward::shifts(problem, {}));
    const auto output_with = [&](float odd) {
      const auto number = [&](std::int64_t row, std::int64_t column) {
        const bool is_odd = head_of(column) == 3 && row % 7 == 0;
        return is_odd ? odd : static_cast<float>((row * 64 + column) * 7 % 11) / 8 - 0.5F;
      };
      return output_of(problem, SoftmaxReference::running, number, number);
    };
    const std::vector<float> expected = output_with(0);
    for (const float odd :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const std::vector<float> output = output_with(odd);
      for (std::size_t i = 0; i < output.size(); ++i) {
        const auto column = static_cast<std::int64_t>(i) % (kDim * kHeads);
        if (head_of(column) == 3)
          ASSERT_FALSE(std::isfinite(output[i])) << i;
        else
          ASSERT_NEAR(output[i], expected[i], 4e-3) << i / (kDim * kHeads) << ", " << column;
      }
    }
  }
}

TEST_F(HopperForwardOnGpu, WhatABiasHidesMayBeAnything) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Problem problem{.seqlen_q = 70, .seqlen_k = 200, .dim = 64};
  problem.bias = Bias{.per_batch = false, .per_head = false, .per_query = false};
  std::vector<float> bias(200, 0.5F);
  bias[40] = bias[199] = -kInfinity;
  const auto output_with = [&](float hidden) {
    const auto number = [&](std::int64_t row, std::int64_t column) {
      if (bias[static_cast<std::size_t>(row)] == -kInfinity) return hidden;
      return static_cast<float>((row * 64 + column) * 7 % 11) / 8 - 0.5F;
    };
    return output_of(problem, SoftmaxReference::automatic, number, number, bias);
  };
  const std::vector<float> expected = output_with(0);
  for (const float hidden : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    const std::vector<float> output = output_with(hidden);
    for (std::size_t i = 0; i < output.size(); ++i)
      ASSERT_NEAR(output[i], expected[i], 4e-3) << i / 64 << ", " << i % 64;
  }
}

TEST_F(HopperForwardOnGpu, AFixedReferenceIsRightForAllNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Problem problem{.seqlen_q = 70, .seqlen_k = 400, .dim = 64};
  // Keys are gone through from the last to the first. A key that holds x has the logit 0.37 x.
  const auto expect_as_running = [&](const char* what, const std::function<float(int)>& key,
                                     float value) {
    const auto keys = [&](std::int64_t row, std::int64_t) { return key(static_cast<int>(row)); };
    const auto values = [&](std::int64_t row, std::int64_t column) {
      return value * static_cast<float>(1 + (row + column) % 5) / 5;
    };
    const std::vector<float> running = output_of(problem, SoftmaxReference::running, keys, values);
    const std::vector<float> fixed = output_of(problem, SoftmaxReference::fixed, keys, values);
    for (std::size_t i = 0; i < running.size(); ++i) {
      ASSERT_EQ(std::isfinite(fixed[i]), std::isfinite(running[i])) << what << ", " << i;
      if (!std::isfinite(running[i])) continue;
      ASSERT_NEAR(fixed[i] / value, running[i] / value, 8e-3) << what;
    }
  };
  expect_as_running(
      "the same", [](int) { return 1.0F; }, 1);
  expect_as_running(
      "slowly more", [](int row) { return static_cast<float>(400 - row) / 8; }, 1);
  expect_as_running(
      "far more", [](int row) { return static_cast<float>(400 - row) * 1e3F; }, 1);
  expect_as_running(
      "less", [](int row) { return static_cast<float>(row) * 1e3F; }, 1);
  expect_as_running(
      "a NaN", [](int row) { return row == 3 ? std::nanf("") : 1.0F; }, 1);
  expect_as_running(
      "an infinity", [](int row) { return row == 3 ? kInfinity : 1.0F; }, 1);
  expect_as_running(
      "nothing at first", [](int row) { return row < 200 ? 1.0F : -kInfinity; }, 1);
  expect_as_running(
      "sums that overflow", [](int row) { return row < 2 ? 50.0F : 0.0F; }, 3e35F);
}

}  // namespace
}  // namespace strobe::cuda::hopper_forward
