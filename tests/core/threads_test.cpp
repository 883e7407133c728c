#include "core/threads.h"

#include <gtest/gtest.h>

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/cores.h"
#include "core/pinning.h"
#include "strobe/error.h"
#include "strobe/threads.h"

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

TEST(Threads, SharesAreNeighboursAndNearlyEqual) {
  for (const std::int64_t items : {0, 1, 7, 64, 1000}) {
    for (const int threads : {1, 3, 64, 200}) {
      const Shares shares(items, threads);
      EXPECT_LE(shares.count(), threads);
      EXPECT_EQ(shares.begin(0), 0);
      EXPECT_EQ(shares.begin(shares.count()), items);
      for (int i = 0; i < shares.count(); ++i) {
        const std::int64_t size = shares.begin(i + 1) - shares.begin(i);
        EXPECT_GE(size, items / shares.count());
        EXPECT_LE(size, items / shares.count() + 1);
      }
    }
  }
}

TEST(Threads, EachBeginsWithItemsOfItsOwn) {
  for (int round = 0; round < 200; ++round) {
    std::array<std::atomic<int>, 2> taken_by{-1, -1};
    parallel_for(2, 2, [&](std::int64_t item, int thread) {
      taken_by[static_cast<std::size_t>(item)] = thread;
      while (taken_by[static_cast<std::size_t>(1 - item)] < 0) std::this_thread::yield();
    });
    EXPECT_EQ(taken_by[0], 0);
    EXPECT_EQ(taken_by[1], 1);
  }
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

TEST(Threads, ACallerDoesNotWaitForAnother) {
  std::atomic<bool> begun{false};
  std::atomic<bool> second_done{false};
  std::atomic<bool> waited{true};
  std::thread first([&] {
    parallel_for(2, 2, [&](std::int64_t, int) {
      begun = true;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!second_done && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    waited = !second_done;
  });
  while (!begun) std::this_thread::yield();
  int count = 0;
  std::mutex mutex;
  parallel_for(5, 2, [&](std::int64_t, int) {
    const std::scoped_lock lock(mutex);
    ++count;
  });
  second_done = true;
  first.join();
  EXPECT_EQ(count, 5);
  EXPECT_FALSE(waited);
}

TEST(Threads, MoreCallersThanThePoolHasRoomFor) {
  std::atomic<int> count{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        parallel_for(4, 2, [&](std::int64_t, int) { ++count; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(count, 20 * 50 * 4);
}

TEST(Threads, ManyShortJobsOfAllWidthsWithPausesBetween) {
  std::int64_t sum = 0;
  std::array<std::int64_t, 6> parts{};
  for (int round = 0; round < 2000; ++round) {
    const int threads = 1 + round % 6;
    parts.fill(0);
    parallel_for(threads, threads, [&](std::int64_t item, int thread) {
      parts[static_cast<std::size_t>(thread)] += item + 1;  // a race if two had the same index
    });
    for (const std::int64_t part : parts) sum += part;
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 12)));
  }
  std::int64_t expected = 0;
  for (int round = 0; round < 2000; ++round) expected += (1 + round % 6) * (2 + round % 6) / 2;
  EXPECT_EQ(sum, expected);
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Threads, AnIdlePoolUsesNoCpu) {
  parallel_for(16, 4, [](std::int64_t, int) {});
  parallel_for(16, 2, [](std::int64_t, int) {});
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.1) << "somebody spins";
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

TEST(Threads, CallersThatArePinnedDoNotShareACore) {
  pin_threads(true);
  std::array<cpu_set_t, 2> sets{};
  std::atomic<int> arrived{0};
  std::vector<std::thread> callers;
  for (cpu_set_t& set : sets) {
    callers.emplace_back([&] {
      parallel_for(1, 1, [&](std::int64_t, int) { sched_getaffinity(0, sizeof set, &set); });
      ++arrived;
      while (arrived < 2) std::this_thread::yield();  // both are alive
    });
  }
  for (auto& caller : callers) caller.join();
  pin_threads(false);
  EXPECT_EQ(CPU_COUNT(&sets[0]), 1);
  if (CPU_COUNT(&*allowed_cores()) > 2) {
    EXPECT_FALSE(CPU_EQUAL(&sets[0], &sets[1]));
  }
}

/// The first core of a set alone.
cpu_set_t first_of(const cpu_set_t& all) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  return one;
}

// In a process of its own, as ctest runs it, the pinned thread is the first to ask.
TEST(Threads, AHostsPinnedThreadDoesNotNarrowThePool) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::thread([&all] {
    const cpu_set_t one = first_of(all);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cores_of_two_threads(), 1 + CPU_COUNT(&all));
  }).join();
  ASSERT_TRUE(allowed_cores());
  EXPECT_TRUE(CPU_EQUAL(&*allowed_cores(), &all));
}

// Likewise, the first to ask is a thread that may use all cores, of a host that has pinned its main
// thread.
TEST(Threads, AHostsPinnedMainThreadDoesNotNarrowThePool) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const cpu_set_t one = first_of(all);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::thread([&all] {
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);  // it began with those of its maker
    EXPECT_EQ(cores_of_two_threads(), 2 * CPU_COUNT(&all));
    EXPECT_EQ(core_facts().allowed, CPU_COUNT(&all));
  }).join();
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(Threads, PinByEnvironmentIsOneOrZero) {
  EXPECT_FALSE(parse_pin(nullptr));
  EXPECT_FALSE(parse_pin(""));
  EXPECT_FALSE(parse_pin("0"));
  EXPECT_TRUE(parse_pin("1"));
  for (const char* wrong : {"yes", "2", "-1", " 1"}) {
    try {
      parse_pin(wrong);
      ADD_FAILURE() << wrong;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.field(), "STROBE_PIN");
      EXPECT_EQ(std::string(error.what()),
                "STROBE_PIN is '" + std::string(wrong) + "', allowed is 0 or 1");
    }
  }
}

TEST(Threads, PinnedOrNotCanBeAsked) {
  pin_threads(true);
  EXPECT_TRUE(threads_pinned());
  pin_threads(false);
  EXPECT_FALSE(threads_pinned());
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
