#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cpu/flash.h"
#include "cpu/isa.h"

namespace strobe::cpu {
namespace {

struct Cut {
  std::int64_t rows;   // of an item
  std::int64_t items;  // of all heads
  std::int64_t most;   // items that there could be
};

Cut forward_cut(const std::string& text, int threads) {
  const Problem problem = Problem::parse(text);
  const IsaKernels& kernels = active_isa();
  const FlashPlan plan = plan_flash(problem, kernels, threads).plan;
  const std::int64_t rows = problem.group() * problem.seqlen_q;
  const std::int64_t pairs = problem.batch * problem.kv_heads() * plan.splits;
  const auto items_of = [&](std::int64_t n) { return pairs * ((rows + n - 1) / n); };
  return {plan.query_rows, items_of(plan.query_rows), items_of(kernels.panel(problem.dtype))};
}

FlashPlan plan_of(const std::string& text, int threads) {
  return plan_flash(Problem::parse(text), active_isa(), threads).plan;
}

bool shares_packs(const std::string& text, int threads) {
  return plan_of(text, threads).packed.keys > 0;
}

TEST(FlashPlan, ManySmallItemsOfAHeadSharePacks) {
  for (const char* text :
       {"b1 sq4096 h1 d128 fp32", "b1 sq4096 h1 d128 bf16 causal", "b1 sq4096 h1 d64 w100:100",
        "b1 sq1024 h8 hk2 d64", "lq4096 lk4096 h1 d128 bf16", "b1 sq4096 sk8192 h1 d64"}) {
    EXPECT_TRUE(shares_packs(text, 16)) << text;
    const Cut cut = forward_cut(text, 16);
    EXPECT_LT(cut.rows, 256) << text;
    EXPECT_GT(cut.items, 2 * 16) << text;  // several for every thread
  }
}

TEST(FlashPlan, FewOrLargeItemsAndThoseOfOneBlockPackForThemselves) {
  for (const char* text :
       {"b1 sq4096 h64 d128", "b1 sq128 h16 d64", "b1 s200000 h1 d64 causal",
        "b1 sq1 sk100000 h2 d64", "b1 sq8 sk8192 h8 hk2 d64", "b1 sq4096 sk100 h1 d64"})
    EXPECT_FALSE(shares_packs(text, 16)) << text;
  EXPECT_FALSE(shares_packs("b1 sq4096 h1 d128", 1));
  EXPECT_FALSE(shares_packs("b1 sq512 h1 d128", 64)) << "most threads have nothing to pack";
  EXPECT_FALSE(shares_packs("b1 sq4096 h1 d128 bwd", 16));
}

TEST(FlashPlan, PacksAreSharedOnlyWhereTheyTakeLittleMemory) {
  EXPECT_TRUE(shares_packs("b1 sq2048 sk8192 h1 d128", 16));
  EXPECT_FALSE(shares_packs("b1 sq2048 sk1000000 h1 d128", 16));
  EXPECT_FALSE(shares_packs("b64 sq2048 sk8192 h1 d128", 512));
  EXPECT_FALSE(shares_packs("b2 sq4096 sk2000000000 lq5,6 lk5,6 h8 d128", 16));
}

TEST(FlashPlan, PacksTakeABoundedWorkspaceThatIsLinearInTheKeys) {
  constexpr std::int64_t kMost = std::int64_t{64} << 20;
  for (std::int64_t keys = 1024; keys < 100'000'000; keys *= 3) {
    const std::string text = "b1 sq1024 sk" + std::to_string(keys) + " h1 d128 fp32";
    const FlashPlan plan = plan_of(text, 16);
    const std::int64_t packs = plan.packed_blocks * plan.packed.bytes;
    EXPECT_LE(packs, kMost);
    EXPECT_LE(packs, 3 * (keys + 512) * 128 * 2 * 4 / 2) << keys;  // of k and v in fp32, and a half
  }
}

TEST(FlashPlan, ItemsThatPackForThemselvesHaveEnoughRows) {
  EXPECT_GE(forward_cut("b1 sq4096 sk1000000 h1 d128 bf16", 16).rows, 256);
  EXPECT_GE(forward_cut("b1 sq4096 sk1000000 h1 d128 fp32", 16).rows, 256);
  EXPECT_GE(forward_cut("b1 sq512 h1 d64 bf16", 2).rows, 256);
  EXPECT_GE(forward_cut("b1 sq128 h8 hk1 d64 bf16", 4).rows, 256);
}

TEST(FlashPlan, MasksMakeMoreAndSmallerItems) {
  const std::string plain = "b1 sq4096 sk1000000 h1 d128 bf16";
  for (const char* mask : {" causal", " w100:-1", " w-1:9"})
    EXPECT_LT(forward_cut(plain + mask, 16).rows, forward_cut(plain, 16).rows) << mask;
  EXPECT_LT(forward_cut("lq4096 lk1000000 h1 d128 bf16", 16).rows, forward_cut(plain, 16).rows);
}

TEST(FlashPlan, StatisticsOfFewQueriesOverManyKeysAreSplitAsTheKeysAre) {
  EXPECT_TRUE(plan_of("b1 sq1 sk5000 h1 d64 fp32 bwd", 1).statistics_are_split);
  EXPECT_TRUE(plan_of("lq1,128 lk5000,9 h8 d64 fp32 bwd", 16).statistics_are_split);
  for (const char* text : {"b1 sq1 sk5000 h1 d64 bf16 bwd", "b1 sq129 sk5000 h1 d64 fp32 bwd",
                           "b1 sq1 sk200 h1 d64 fp32 bwd", "b1 sq1 sk5000 h64 d64 fp32 bwd"})
    EXPECT_FALSE(plan_of(text, 16).statistics_are_split) << text;
}

TEST(FlashPlan, EveryThreadHasAnItem) {
  for (const char* text : {"b1 sq4096 h1 d64", "b1 sq128 h8 d64", "b1 sq100 h1 d64 bf16",
                           "b3 sq1000 h5 hk5 d64", "b1 sq1 sk100000 h2 d64", "b1 sq5000 h3 d64"}) {
    for (const int threads : {1, 2, 3, 7, 16, 64}) {
      const Cut cut = forward_cut(text, threads);
      // Rows come in panels, and in items of the same size: half of the threads may be left over.
      EXPECT_GE(2 * cut.items, std::min<std::int64_t>(threads, cut.most)) << text << ' ' << threads;
    }
  }
}

}  // namespace
}  // namespace strobe::cpu
