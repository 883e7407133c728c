#include "cpu/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace strobe::cpu {
namespace {

/// Items of heads 0, 1, ... each with these costs.
std::vector<WorkItem> items_of(int heads, const std::vector<double>& costs) {
  std::vector<WorkItem> items;
  for (std::size_t row = 0; row < costs.size(); ++row) {
    for (int head = 0; head < heads; ++head) {
      items.push_back({.key_head = head,
                       .row_begin = static_cast<std::int64_t>(row),
                       .row_end = static_cast<std::int64_t>(row) + 1,
                       .cost = costs[row]});
    }
  }
  return items;
}

std::vector<WorkItem> dealt(std::vector<WorkItem> items, int threads) {
  std::vector<WorkItem> room(items.size());
  deal(items, room, threads);
  return items;
}

TEST(Deal, EveryItemOnceTheLargestOfEveryShareFirst) {
  for (const int threads : {1, 2, 3, 8, 100}) {
    const auto items = dealt(items_of(5, {3, 9, 1, 7, 9}), threads);
    std::vector<int> seen(5 * 5);
    for (const WorkItem& item : items)
      ++seen[static_cast<std::size_t>(item.key_head * 5 + item.row_begin)];
    EXPECT_EQ(seen, std::vector<int>(5 * 5, 1)) << threads;
    const Shares shares(std::ssize(items), threads);
    for (int share = 0; share < shares.count(); ++share) {
      for (std::int64_t i = shares.begin(share) + 1; i < shares.begin(share + 1); ++i)
        EXPECT_GE(items[static_cast<std::size_t>(i - 1)].cost,
                  items[static_cast<std::size_t>(i)].cost);
    }
  }
}

TEST(Deal, SharesAreEquallyLarge) {
  const auto items = dealt(items_of(4, {8, 4, 2, 1}), 2);
  const Shares shares(std::ssize(items), 2);
  for (int share = 0; share < 2; ++share) {
    double cost = 0;
    for (std::int64_t i = shares.begin(share); i < shares.begin(share + 1); ++i)
      cost += items[static_cast<std::size_t>(i)].cost;
    EXPECT_EQ(cost, 2 * (8 + 4 + 2 + 1));
  }
}

TEST(Deal, EqualItemsOfAShareAreNeighbours) {
  const auto items = dealt(items_of(8, {5, 6}), 4);
  const Shares shares(std::ssize(items), 4);
  for (std::int64_t i = 0; i < std::ssize(items); ++i) {
    std::int64_t share = 0;
    while (shares.begin(static_cast<int>(share) + 1) <= i) ++share;
    EXPECT_EQ(items[static_cast<std::size_t>(i)].key_head / 2, share) << i;
  }
}

TEST(Deal, NothingAtAll) {
  EXPECT_TRUE(dealt({}, 3).empty());
}

}  // namespace
}  // namespace strobe::cpu
