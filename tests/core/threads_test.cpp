#include "core/threads.h"

#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe {
namespace {

TEST(Threads, EveryItemOnceAndThreadsInRange) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const std::int64_t items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(items));
      std::atomic<bool> in_range{true};
      parallel_for(items, threads, [&](std::int64_t item, int thread) {
        ++seen[static_cast<std::size_t>(item)];
        if (thread < 0 || thread >= threads) in_range = false;
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
      EXPECT_TRUE(in_range);
    }
  }
}

TEST(Threads, NoTwoItemsShareAThreadIndexAtOnce) {
  constexpr int kThreads = 4;
  std::array<std::atomic<int>, kThreads> busy{};
  std::atomic<bool> shared{false};
  for (int round = 0; round < 200; ++round) {
    parallel_for(64, kThreads, [&](std::int64_t, int thread) {
      if (busy[static_cast<std::size_t>(thread)].fetch_add(1) != 0) shared = true;
      busy[static_cast<std::size_t>(thread)].fetch_sub(1);
    });
  }
  EXPECT_FALSE(shared);
}

TEST(Threads, AnExceptionComesBackAndThePoolLives) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(parallel_for(100, 4,
                              [](std::int64_t item, int) {
                                if (item == 13) throw std::runtime_error("unlucky");
                              }),
                 std::runtime_error);
    std::atomic<int> count{0};
    parallel_for(50, 4, [&](std::int64_t, int) { ++count; });
    EXPECT_EQ(count, 50);
  }
}

TEST(Threads, NestedCallsRunInPlace) {
  std::atomic<int> count{0};
  parallel_for(8, 4,
               [&](std::int64_t, int) { parallel_for(8, 4, [&](std::int64_t, int) { ++count; }); });
  EXPECT_EQ(count, 64);
}

TEST(Threads, SeveralCallersAtOnce) {
  std::atomic<int> count{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        parallel_for(16, 3, [&](std::int64_t, int) { ++count; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(count, 4 * 100 * 16);
}

/// Cores that the threads of one parallel_for may run on, added up over the threads.
int cores_of_two_threads() {
  std::atomic<int> cores{0};
  std::atomic<int> arrived{0};
  parallel_for(2, 2, [&](std::int64_t, int) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores += CPU_COUNT(&set);
    ++arrived;
    while (arrived < 2) std::this_thread::yield();  // so that both take part
  });
  return cores;
}

TEST(Threads, PinnedEachToOneCoreAndLetGoAgain) {
  const int free = cores_of_two_threads();
  pin_threads(true);
  EXPECT_EQ(cores_of_two_threads(), 2);
  pin_threads(false);
  EXPECT_EQ(cores_of_two_threads(), free);
}

TEST(Threads, EnvironmentSetsTheNumber) {
  setenv("STROBE_THREADS", "3", 1);
  EXPECT_EQ(default_threads(), 3);
  for (const char* wrong : {"0", "-1", "many", "2x"}) {
    setenv("STROBE_THREADS", wrong, 1);
    EXPECT_THROW(default_threads(), InvalidArgument) << wrong;
  }
  unsetenv("STROBE_THREADS");
  EXPECT_GE(default_threads(), 1);
}

}  // namespace
}  // namespace strobe
