#include "report/kernel_summary.h"

#include <gtest/gtest.h>

namespace strobe::lab {
namespace {

RecordedSpan span(std::string_view category, std::string_view name, std::int64_t begin_ms,
                  std::int64_t end_ms) {
  return {category, name, begin_ms * 1'000'000, end_ms * 1'000'000, {}};
}

/// Two calls of 10 ms on two threads, one of which comes late.
Recording two_calls() {
  return {{.id = 1,
           .name = "main",
           .spans = {span("library", "execute", 0, 10), span("cpu", "tiles", 0, 9),
                     span("library", "execute", 20, 30), span("cpu", "tiles", 21, 30)}},
          {.id = 2,
           .name = "worker 1",
           .spans = {span("cpu", "tiles", 5, 10), span("cpu", "tiles", 21, 30)}}};
}

TEST(KernelSummary, TellsOwnTimeFromThatWithin) {
  const std::vector<KernelRow> rows = kernel_rows(two_calls());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "tiles") << "the most first";
  EXPECT_EQ(rows[0].calls, 4);
  EXPECT_DOUBLE_EQ(rows[0].total_ms, 32);
  EXPECT_DOUBLE_EQ(rows[0].self_ms, 32);
  EXPECT_DOUBLE_EQ(rows[0].mean_ms(), 8);
  EXPECT_DOUBLE_EQ(rows[1].total_ms, 20);
  EXPECT_DOUBLE_EQ(rows[1].self_ms, 2);
}

TEST(KernelSummary, PartsAddUpToAll) {
  const std::string text = kernel_summary(kernel_rows(two_calls()));
  EXPECT_NE(text.find("94.1"), std::string::npos) << text;
  EXPECT_NE(text.find("5.9"), std::string::npos) << text;
}

TEST(KernelSummary, KnowsHowBusyThreadsWere) {
  EXPECT_DOUBLE_EQ(busy_part(two_calls(), 2), 0.8);
  EXPECT_EQ(busy_part({}, 2), 0);
}

}  // namespace
}  // namespace strobe::lab
