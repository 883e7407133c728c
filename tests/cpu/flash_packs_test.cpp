// Keys and values that are packed once for all items of their head.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "cpu/flash.h"
#include "cpu/isa.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "support/tensors.h"

namespace strobe::cpu {
namespace {

using test::Operands;
using Memory = std::vector<std::byte>;

/// Where memory for a workspace or for packs begins, which is aligned.
void* aligned(Memory& memory) {
  void* begin = memory.data();
  std::size_t space = memory.size();
  return std::align(64, memory.size() - 64, begin, space);
}

/// A plan with small items, which share packs or do not, whatever it would decide.
Plan plan_packs(const Problem& problem, bool shared, int threads) {
  constexpr int kThreadsForSmallItems = 16;
  const Implementation& flash = Registry::instance().find("flash");
  Plan plan = flash.plan(problem, {.threads = kThreadsForSmallItems});
  FlashPlan changed = *static_cast<const FlashPlan*>(plan.state.get());
  changed.threads = threads;
  changed.packed = {};
  if (shared) {
    changed.packed = changed.kernels->packed_block(problem.dtype, problem.dim, problem.value_dim());
    changed.packed_blocks = (problem.keys() + changed.packed.keys - 1) / changed.packed.keys;
    changed.packs_offset = static_cast<std::int64_t>(plan.workspace_bytes + 63) / 64 * 64;
    plan.workspace_bytes = static_cast<std::size_t>(
        changed.packs_offset +
        problem.batch * problem.kv_heads() * changed.packed_blocks * changed.packed.bytes);
  }
  plan.state = std::make_shared<FlashPlan>(changed);
  return plan;
}

void run_plan(const Plan& plan, Operands& operands) {
  Memory memory(plan.workspace_bytes + 64, std::byte{0xFF});
  Registry::instance().find("flash").run(plan, operands.views(), aligned(memory),
                                         plan.workspace_bytes);
}

/// Each with all instruction sets that this machine has.
class FlashPacks : public testing::TestWithParam<const Isa*> {
 protected:
  void SetUp() override {
    if (!GetParam()->runs_here()) GTEST_SKIP() << "this CPU has no " << GetParam()->kernels->name;
  }
  test::ScopedVariable forced_{"STROBE_CPU_ISA", GetParam()->kernels->name};
};

/// `spoil` may change the inputs.
template <class Spoil>
void expect_same_bits_with_packs(const char* text, Spoil&& spoil) {
  const Problem problem = Problem::parse(text);
  Operands own = test::make_operands(problem, 5);
  spoil(own);
  run_plan(plan_packs(problem, false, 1), own);
  for (const int threads : {1, 2, 8}) {
    Operands shared = test::make_operands(problem, 5);
    spoil(shared);
    run_plan(plan_packs(problem, true, threads), shared);
    EXPECT_EQ(own.out.bytes(), shared.out.bytes()) << text << ' ' << threads;
    EXPECT_EQ(own.lse.bytes(), shared.lse.bytes()) << text << ' ' << threads;
  }
}

TEST_P(FlashPacks, SharingDoesNotChangeABit) {
  for (const char* text :
       {"b1 sq150 sk530 h1 d40 fp32", "b1 sq150 sk1040 h1 d24 bf16", "b1 sq150 sk530 h1 d24 fp16",
        "b2 sq100 sk540 h2 d24 bf16 causal", "b1 sq150 sk300 h4 hk2 d21 fp32 causal sinks bias:qk",
        "b1 sq300 sk200 h1 d21 fp16 causal", "b1 sq150 sk600 h1 d59 fp32 w50:130",
        "b1 sq100 sk1100 h2 hk1 d24 bf16 w70:0", "b1 sq100 sk600 h2 d33 bf16 drop0.2 alibi cap7",
        "b1 sq100 sk1100 h1 d24 fp32", "b1 sq150 sk530 h1 d40 dv24 fp32",
        "lq150,0,1,100,3 lk10,300,500,600,0 h3 d21 fp16",
        "lq200,5 lk600,600 h4 hk1 d24 bf16 causal"})
    expect_same_bits_with_packs(text, [](Operands&) {});
}

TEST_P(FlashPacks, WhatIsNotFiniteGivesTheSameBits) {
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    const std::string text = std::string("b1 sq150 sk700 h1 d24 ") + dtype;
    expect_same_bits_with_packs(
        text.c_str(), [](Operands& operands) { operands.k.set(333 * 24 + 7, std::nanf("")); });
    expect_same_bits_with_packs(text.c_str(), [](Operands& operands) {
      operands.v.set(690 * 24, std::numeric_limits<float>::infinity());
    });
  }
}

TEST_P(FlashPacks, ValuesOfMaskedKeysDoNotShow) {
  const Problem problem = Problem::parse("b1 s700 h1 d8 fp32 causal");
  Operands clean = test::make_operands(problem, 6);
  Operands dirty = test::make_operands(problem, 6);
  dirty.k.set(400 * 8, std::nanf(""));
  dirty.v.set(400 * 8, std::numeric_limits<float>::infinity());
  run_plan(plan_packs(problem, true, 2), clean);
  run_plan(plan_packs(problem, true, 2), dirty);
  for (std::int64_t i = 0; i < 400 * 8; ++i) ASSERT_NEAR(clean.out[i], dirty.out[i], 2e-6) << i;
  for (std::int64_t i = 400; i < 700; ++i) ASSERT_TRUE(std::isnan(dirty.out[i * 8])) << i;
}

HeadTask head_of(const Problem& problem, Operands& operands) {
  const auto rows = [](test::Tensor& tensor) -> Rows {
    const TensorView view = tensor.view();
    return {view.data, view.strides[1]};
  };
  HeadTask task;
  task.dtype = problem.dtype;
  task.q = rows(operands.q);
  task.k = rows(operands.k);
  task.v = rows(operands.v);
  task.out = rows(operands.out);
  task.len_q = problem.seqlen_q;
  task.len_k = problem.keys();
  task.dim = problem.dim;
  task.dim_v = problem.value_dim();
  task.window_left = problem.effective_window().left;
  return task;
}

TEST_P(FlashPacks, AnItemTakesThePacksThatItIsGiven) {
  const IsaKernels& kernels = *GetParam()->kernels;
  for (const char* text :
       {"b1 sq64 sk600 h1 d40 fp32", "b1 sq64 sk600 h1 d40 bf16", "b1 sq64 sk600 h1 d40 fp16"}) {
    const Problem problem = Problem::parse(text);
    Operands one = test::make_operands(problem, 1);
    Operands other = test::make_operands(problem, 2);
    const PackedBlock block = kernels.packed_block(problem.dtype, 40, 40);
    Memory memory(static_cast<std::size_t>((600 / block.keys + 1) * block.bytes) + 64);
    const HeadTask packed = head_of(problem, other);
    for (std::int64_t key = 0; key < 600; key += block.keys)
      kernels.pack_keys(packed, key, aligned(memory));

    HeadTask mixed = head_of(problem, other);
    mixed.k = head_of(problem, one).k;
    mixed.v = head_of(problem, one).v;
    ForwardItem item{.heads = &mixed, .row_end = 64, .key_end = 600, .packs = aligned(memory)};
    Memory scratch(kernels.forward_scratch(problem.dtype, 40, 40, 64) + 64);
    kernels.forward(item, aligned(scratch));
    const std::vector<std::byte> given = other.out.bytes();
    item.heads = &packed;
    item.packs = nullptr;
    kernels.forward(item, aligned(scratch));
    EXPECT_EQ(given, other.out.bytes()) << text;
  }
}

TEST_P(FlashPacks, BlocksThatNoQuerySeesAreNotPacked) {
  const IsaKernels& kernels = *GetParam()->kernels;
  const Problem problem = Problem::parse("b1 sq10 sk2048 h1 d16 fp32 w5:0");
  Operands operands = test::make_operands(problem, 1);
  const HeadTask task = head_of(problem, operands);
  const PackedBlock block = kernels.packed_block(problem.dtype, 16, 16);
  const std::int64_t blocks = 2048 / block.keys;
  Memory memory(static_cast<std::size_t>(blocks * block.bytes) + 64, std::byte{0x5A});
  const Memory untouched = memory;
  for (std::int64_t b = 0; b + 1 < blocks; ++b)
    kernels.pack_keys(task, b * block.keys, aligned(memory));
  EXPECT_EQ(memory, untouched);
  kernels.pack_keys(task, (blocks - 1) * block.keys, aligned(memory));
  EXPECT_NE(memory, untouched);
}

INSTANTIATE_TEST_SUITE_P(Isas, FlashPacks, testing::ValuesIn([] {
                           std::vector<const Isa*> all;
                           for (const Isa& isa : isas()) all.push_back(&isa);
                           return all;
                         }()),
                         [](const auto& given) { return std::string(given.param->kernels->name); });

}  // namespace
}  // namespace strobe::cpu
