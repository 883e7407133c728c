#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/threads.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "strobe/strobe.h"
#include "strobe/threads.h"
#include "support/tensors.h"

namespace strobe {
namespace {

/// A host's threads: `width` of them for each call, 0 for the calling thread alone.
struct HostThreads {
  int width = 0;
  std::atomic<int> calls{0};
  std::atomic<std::int64_t> most_tasks{0};
};

void run_on_host(void* context, std::int64_t tasks, Executor::Call call, void* argument) {
  auto& host = *static_cast<HostThreads*>(context);
  ++host.calls;
  if (tasks > host.most_tasks) host.most_tasks = tasks;
  if (host.width == 0) {
    for (std::int64_t task = tasks; task-- > 0;) call(argument, task);  // any order will do
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < host.width; ++i) {
    threads.emplace_back([&] {
      for (std::int64_t task; (task = next++) < tasks;) call(argument, task);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// Each test on a serial host, one with few threads and one with many.
class ThreadExecutor : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_executor({run_on_host, &host_}); }
  void TearDown() override { set_executor({}); }

  HostThreads host_{.width = GetParam()};
};

TEST_P(ThreadExecutor, RunsEveryItemOnceAndThreadsAreInRange) {
  for (const int threads : {2, 3, 8}) {
    for (const std::int64_t items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(items));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      std::atomic<bool> wrong{false};
      parallel_for(items, threads, [&](std::int64_t item, int thread) {
        ++seen[static_cast<std::size_t>(item)];
        if (thread < 0 || thread >= threads) {
          wrong = true;
        } else {
          if (busy[static_cast<std::size_t>(thread)]++ != 0) wrong = true;
          --busy[static_cast<std::size_t>(thread)];
        }
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
      EXPECT_FALSE(wrong);
    }
  }
  EXPECT_GT(host_.calls, 0);
  EXPECT_EQ(host_.most_tasks, 8);
}

TEST_P(ThreadExecutor, AnExceptionGoesRoundTheHostAndComesBack) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_THROW(parallel_for(100, 4,
                              [](std::int64_t item, int) {
                                if (item == 13) throw std::runtime_error("unlucky");
                              }),
                 std::runtime_error);
  }
  EXPECT_EQ(host_.calls, 5);
}

TEST_P(ThreadExecutor, NestedCallsRunInPlace) {
  std::atomic<int> count{0};
  parallel_for(8, 4,
               [&](std::int64_t, int) { parallel_for(8, 4, [&](std::int64_t, int) { ++count; }); });
  EXPECT_EQ(count, 64);
  EXPECT_EQ(host_.calls, 1);
}

TEST_P(ThreadExecutor, AttentionGivesTheSameBits) {
  for (const char* text : {"b2 s70 h3 d16 fp32 causal", "b1 s50 h4 hk2 d8 bf16 bwd"}) {
    const Problem problem = Problem::parse(text);
    const Implementation& flash = Registry::instance().find("flash");
    test::Operands hosted = test::make_operands(problem, 7);
    test::run(flash, problem, hosted.views(), 4);
    set_executor({});
    test::Operands own = test::make_operands(problem, 7);
    test::run(flash, problem, own.views(), 4);
    set_executor({run_on_host, &host_});
    EXPECT_EQ(hosted.out.bytes(), own.out.bytes());
    EXPECT_EQ(hosted.dq.bytes(), own.dq.bytes());
    EXPECT_EQ(hosted.dk.bytes(), own.dk.bytes());
    EXPECT_EQ(hosted.dv.bytes(), own.dv.bytes());
  }
  EXPECT_GT(host_.calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Hosts, ThreadExecutor, testing::Values(0, 2, 5));

TEST(ThreadExecutors, AreLetGoAgain) {
  HostThreads host;
  set_executor({run_on_host, &host});
  parallel_for(4, 2, [](std::int64_t, int) {});
  set_executor({});
  parallel_for(4, 2, [](std::int64_t, int) {});
  EXPECT_EQ(host.calls, 1);
}

TEST(ThreadExecutors, ThatLeaveTasksOutAreFoundOut) {
  const auto lazy = [](void*, std::int64_t tasks, Executor::Call call, void* argument) {
    for (std::int64_t task = 1; task < tasks; ++task) call(argument, task);
  };
  set_executor({lazy, nullptr});
  EXPECT_THROW(parallel_for(4, 2, [](std::int64_t, int) {}), Error);
  set_executor({});
}

TEST(ThreadExecutors, CanBeSetThroughTheCInterface) {
  HostThreads host{.width = 2};
  strobe_set_executor(run_on_host, &host);
  std::atomic<int> count{0};
  parallel_for(20, 4, [&](std::int64_t, int) { ++count; });
  strobe_set_executor(nullptr, nullptr);
  parallel_for(20, 4, [&](std::int64_t, int) { ++count; });
  EXPECT_EQ(count, 40);
  EXPECT_EQ(host.calls, 1);
}

}  // namespace
}  // namespace strobe
