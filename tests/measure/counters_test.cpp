#include "measure/counters.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

namespace strobe::lab {
namespace {

void add_up(int numbers) {
  volatile std::int64_t sum = 0;
  for (int i = 0; i < numbers; ++i) sum = sum + i;
}

/// A file from which one reading after the other is taken: value, time enabled, time running.
int file_of(const std::vector<std::array<std::uint64_t, 3>>& readings) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return -EMFILE;
  for (const auto& reading : readings) {
    EXPECT_EQ(write(ends[1], reading.data(), sizeof reading), ssize_t{sizeof reading});
  }
  close(ends[1]);
  return ends[0];
}

TEST(Counters, AreCountedOrRefusedWithASentence) {
  bool ran = false;
  const Counts counts = count([&ran] {
    ran = true;
    add_up(1000);
  });
  EXPECT_TRUE(ran);
  if (!counts.refused.empty()) {
    for (const Counter counter : kCounters) EXPECT_FALSE(counts[counter]) << name_of(counter);
    return;
  }
  EXPECT_GT(counts[Counter::instructions].value_or(1), 0);
}

TEST(Counters, MoreWorkIsMoreInstructions) {
  const Counts few = count([] { add_up(10'000); });
  const Counts many = count([] { add_up(1'000'000); });
  if (!few[Counter::instructions] || !many[Counter::instructions])
    GTEST_SKIP() << "not counted here: " << few.refused;
  EXPECT_GT(*many[Counter::instructions], 10 * *few[Counter::instructions]);
}

TEST(Counters, OfThreadsThatStartMeanwhileAreIncluded) {
  const Counts counts = count([] { std::thread([] { add_up(1'000'000); }).join(); });
  if (!counts[Counter::instructions]) GTEST_SKIP() << "not counted here: " << counts.refused;
  EXPECT_GT(*counts[Counter::instructions], 1'000'000);
}

TEST(Counters, EveryRefusalSaysWhatToDo) {
  for (const auto& [error, word] :
       std::initializer_list<std::pair<int, const char*>>{{EACCES, "let this"},
                                                          {EPERM, "let this"},
                                                          {ENOENT, "virtual machines"},
                                                          {EOPNOTSUPP, "virtual PMU"},
                                                          {ENOSYS, "sandbox"},
                                                          {EMFILE, "manual"}}) {
    bool ran = false;
    const Counts counts =
        count([&ran] { ran = true; }, [error = error](Counter, int) { return -error; });
    EXPECT_TRUE(ran) << "the work is done all the same";
    EXPECT_NE(counts.refused.find(word), std::string::npos) << error << ": " << counts.refused;
    EXPECT_FALSE(counts[Counter::cycles]);
  }
}

TEST(Counters, WhatTookTurnsIsMadeUpFor) {
  bool first = true;
  const Counts counts = count([] {},
                              [&first](Counter counter, int) -> int {
                                // One thread, whatever others this process has; the counter was
                                // there for half of the time.
                                if (counter != Counter::cycles || !std::exchange(first, false))
                                  return -ENOENT;
                                return file_of({{1'000, 100, 100}, {1'500, 300, 200}});
                              });
  EXPECT_TRUE(counts.refused.empty()) << counts.refused;
  ASSERT_TRUE(counts[Counter::cycles]);
  EXPECT_DOUBLE_EQ(*counts[Counter::cycles], 1'000);
  EXPECT_FALSE(counts[Counter::instructions]) << "one that is not there is absent alone";
}

TEST(Counters, WhatNeverHadATurnIsAbsent) {
  bool first = true;
  const Counts counts = count([] {},
                              [&first](Counter, int) -> int {
                                if (!std::exchange(first, false)) return -ENOENT;
                                return file_of({{0, 0, 0}, {0, 300, 0}});
                              });
  EXPECT_FALSE(counts[Counter::cycles]);
}

}  // namespace
}  // namespace strobe::lab
