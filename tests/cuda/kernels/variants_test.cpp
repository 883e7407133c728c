// The ways to cut a problem that tuning tries, and how they are written.
#include "cuda/kernels/variant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/text.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/flash/flash.h"
#include "cuda/kernels/hopper_backward/variants.h"
#include "cuda/kernels/hopper_forward/variants.h"
#include "strobe/error.h"

namespace strobe::cuda {
namespace {

const jit::Architecture kHopper{.major = 9, .minor = 0, .specific = true};
constexpr int kMultiprocessors = 132;
constexpr hopper_forward::Work kWork{.queries = 4096, .keys = 4096, .heads = 64};

std::vector<std::string> variants_of(const std::string& problem, const PlanOptions& options = {}) {
  return flash::variants(Problem::parse(problem), options, kHopper, kMultiprocessors);
}

TEST(TileText, ReadsWhatItWrites) {
  const auto tile = TileText::parse("192x80/1/3", {});
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->queries, 192);
  EXPECT_EQ(tile->keys, 80);
  EXPECT_EQ(tile->first, 1);
  EXPECT_EQ(tile->second, 3);
  EXPECT_EQ(tile->text(), "192x80/1/3");
  EXPECT_EQ(TileText::parse("192x80", {.first = 2, .second = 4})->text(), "192x80/2/4");
  EXPECT_EQ(TileText::parse("192x80/1", {.first = 2, .second = 4})->text(), "192x80/1/4");
}

TEST(TileText, RefusesEverythingElse) {
  for (const char* wrong : {"", "x", "192", "192x", "192x80/", "192x80/1/", "192x80/1/2/3",
                            "192*80", " 192x80", "192x80 ", "192x80/1/2x", "99999999999x80"}) {
    EXPECT_FALSE(TileText::parse(wrong, {})) << wrong;
  }
}

TEST(HopperForwardVariants, AreFewAndDifferentAndTheUsualOneIsFirst) {
  for (int dim = 8; dim <= 256; dim += 8) {
    for (const char* rest : {"", " causal", " w100:0", " cap5 alibi"}) {
      const std::string problem = concat("b4 sq4096 h16 d", dim, " bf16", rest);
      SCOPED_TRACE(problem);
      const std::vector<std::string> all = variants_of(problem);
      EXPECT_GE(all.size(), 4u);
      EXPECT_LE(all.size(), 40u);
      EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
      const bool causal = std::string_view(rest) == " causal";
      if (*rest != '\0' && !causal) continue;
      HopperForwardFeatures features{.dim = dim, .value_dim = dim, .window_right = causal};
      features.reference = choose_reference(features, kWork);
      const auto usual = choose_hopper_forward(features, kWork);
      EXPECT_EQ(all.front(), hopper_forward::variant_text(usual.shape));
    }
  }
}

TEST(HopperForwardVariants, FitAndCanBeReadAgain) {
  for (const int dim : {8, 40, 64, 96, 128, 136, 192, 256}) {
    for (const int value_dim : {dim, 64}) {
      const HopperForwardFeatures features{
          .dim = dim, .value_dim = value_dim, .window_right = true};
      for (const HopperForwardShape& shape : hopper_forward::worth_trying(features)) {
        const std::string text = hopper_forward::variant_text(shape);
        SCOPED_TRACE(text);
        const auto config = hopper_forward::parse_variant(text, features, kWork);
        ASSERT_TRUE(config);
        EXPECT_EQ(hopper_forward::variant_text(config->shape), text);
        EXPECT_EQ(config->shape, suited(shape, features, kWork));
        EXPECT_LE(shared_bytes(*config), shared_memory_of(90).per_block);
        EXPECT_LE(shape.block_keys * 3 / 4 + value_dim / 2, config->consumer_registers());
        EXPECT_GE(config->producer_registers(), 24);
      }
    }
  }
}

TEST(HopperForwardVariants, RefusesWhatIsNoneOrDoesNotFit) {
  const auto parse = [](const char* text, int dim) {
    return hopper_forward::parse_variant(text, {.dim = dim, .value_dim = dim}, kWork);
  };
  EXPECT_TRUE(parse("128x128", 128));
  for (const char* wrong : {"64x128", "100x128", "320x64", "128x100", "128x0", "128x-16", "128x272",
                            "128x128/0", "128x128/3", "128x128/2/0", "128x128/2/9", "tile"}) {
    EXPECT_FALSE(parse(wrong, 64)) << wrong;
  }
  EXPECT_TRUE(parse("128x128/2/3", 64));
  EXPECT_FALSE(parse("128x128/2/3", 128)) << "too much shared memory";
}

TEST(HopperBackwardVariants, FitAndCanBeReadAgainAndTheUsualOneIsFirst) {
  for (int dim = 8; dim <= 256; dim += 8) {
    for (const bool deterministic : {false, true}) {
      const std::string problem = concat("b4 sq4096 h16 d", dim, " bf16 causal bwd");
      SCOPED_TRACE(problem);
      const HopperBackwardFeatures features{
          .dim = dim, .value_dim = dim, .window_right = true, .deterministic = deterministic};
      const std::vector<std::string> all = variants_of(problem, {.deterministic = deterministic});
      EXPECT_LE(all.size(), 40u);
      EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
      EXPECT_EQ(all.front(), hopper_backward::variant_text(choose_hopper_backward(features).shape));
      for (const std::string& text : all) {
        const auto config = hopper_backward::parse_variant(text, features);
        ASSERT_TRUE(config) << text;
        EXPECT_EQ(hopper_backward::variant_text(config->shape), text);
        EXPECT_LE(shared_bytes(*config), shared_memory_of(90).per_block) << text;
        EXPECT_TRUE(!config->shape.in_pairs || config->shape.slice_slots == 0)
            << text << ": pairs add to the sums themselves";
      }
    }
  }
}

TEST(HopperBackwardVariants, WhatIsLeftOutIsAsUsual) {
  const HopperBackwardFeatures features{.dim = 192, .value_dim = 192};
  const HopperBackwardShape usual = choose_hopper_backward(features).shape;
  ASSERT_TRUE(usual.in_pairs);
  for (const char* text : {"64x128", "64x128/2"}) {
    const auto config = hopper_backward::parse_variant(text, features);
    ASSERT_TRUE(config) << text;
    EXPECT_EQ(config->shape, usual) << text;
  }
}

TEST(HopperBackwardVariants, RefusesWhatIsNoneOrDoesNotFit) {
  for (const char* wrong : {"64x128/3/4", "64x128/1/0", "96x128/3/1", "64x192/3/1", "64x128/3/-1",
                            "64x128/3/3", "slices"}) {
    EXPECT_FALSE(hopper_backward::parse_variant(wrong, {.dim = 128})) << wrong;
  }
  EXPECT_TRUE(hopper_backward::parse_variant("64x128/3/0", {.dim = 128}));
  EXPECT_TRUE(hopper_backward::parse_variant("64x128/3/0", {.dim = 128, .deterministic = true}));
  EXPECT_FALSE(hopper_backward::parse_variant("128x128/3/1", {.dim = 128})) << "of smaller dims";
  EXPECT_FALSE(hopper_backward::parse_variant("64x128/3/1", {.dim = 64, .value_dim = 64}))
      << "of larger dims";
}

TEST(HopperBackwardVariants, WithDropoutDvComesAfterTheGradientsOfScores) {
  HopperBackwardFeatures features{.dim = 128, .value_dim = 128};
  EXPECT_GT(choose_hopper_backward(features).shape.values_first, 0);
  features.dropout = true;
  EXPECT_EQ(choose_hopper_backward(features).shape.values_first, 0);
  for (const HopperBackwardShape& shape : hopper_backward::worth_trying(features))
    EXPECT_EQ(shape.values_first, 0) << hopper_backward::variant_text(shape);
}

TEST(Variants, ThereAreNoneOfOtherKernels) {
  EXPECT_TRUE(variants_of("b1 sq64 h1 d64 fp32").empty());
  EXPECT_TRUE(variants_of("b1 sq64 sk65 h1 d64 bf16 bias:qk").empty());
  EXPECT_TRUE(variants_of("b1 sq64 sk65 h1 d64 bf16 bias:qk bwd").empty());
  EXPECT_TRUE(
      flash::variants(Problem::parse("b1 sq64 h1 d64 bf16"), {}, {.major = 8}, 108).empty());
}

TEST(Variants, AWrongOneIsToldHowItIsWritten) {
  try {
    refuse_variant("192x100", hopper_forward::kVariantForm);
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), "variant");
    for (const char* part : {"'192x100'", "128x128/2/2", "strobe tune --list"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(Variants, ThatSpillAreRefused) {
  refuse_spills("192x64/2/4", {{.entry = "kernel", .registers = 128}});
  try {
    refuse_spills("192x64/2/4", {{.entry = "kernel", .spill_store_bytes = 8, .stack_bytes = 16}});
    FAIL() << "is refused";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("192x64/2/4"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("24 bytes"), std::string::npos) << error.what();
  }
}

/// Some that are nobody's usual ones: they compile, and keep nothing in local memory.
TEST(Variants, CompileWithoutSpills) {
  if (!jit::found_nvrtc().missing.empty()) GTEST_SKIP() << jit::found_nvrtc().missing;
  const auto forward = [](const char* text, const HopperForwardFeatures& features) {
    return description(*hopper_forward::parse_variant(text, features, kWork));
  };
  const auto backward = [](const char* text, const HopperBackwardFeatures& features) {
    return description(*hopper_backward::parse_variant(text, features));
  };
  for (const jit::KernelDescription& kernel :
       {forward("128x144/2/2", {}), forward("192x64/2/4", {}),
        backward("64x64/2/1", {.dim = 64, .value_dim = 64}),
        backward("64x64/3/3", {.window_right = true})}) {
    SCOPED_TRACE(jit::configuration_text(kernel));
    for (const jit::Resources& r : jit::build(kernel, kHopper).binary.resources) {
      EXPECT_EQ(r.spill_store_bytes + r.spill_load_bytes + r.stack_bytes, 0);
      EXPECT_LE(r.registers, kernel.max_registers);
    }
  }
}

}  // namespace
}  // namespace strobe::cuda
