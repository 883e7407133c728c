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

TEST(FlashPlan, ItemsHaveEnoughRowsToPackKeysFor) {
  EXPECT_GE(forward_cut("b1 sq4096 h1 d128 bf16", 16).rows, 256);
  EXPECT_GE(forward_cut("b1 sq4096 h1 d128 fp32", 16).rows, 256);
  EXPECT_GE(forward_cut("b1 sq512 h1 d64 bf16", 2).rows, 256);
  EXPECT_GE(forward_cut("b1 sq128 h8 hk1 d64 bf16", 4).rows, 256);
}

TEST(FlashPlan, MasksMakeMoreAndSmallerItems) {
  const std::string plain = "b1 sq4096 h1 d128 bf16";
  for (const char* mask : {" causal", " w100:-1", " w-1:9"})
    EXPECT_LT(forward_cut(plain + mask, 16).rows, forward_cut(plain, 16).rows) << mask;
  EXPECT_LT(forward_cut("lq4096 lk4096 h1 d128 bf16", 16).rows, forward_cut(plain, 16).rows);
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
