// Memory: a run allocates nothing, and what it works in does not grow with the length.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <thread>
#include <utility>

#include "core/threads.h"
#include "strobe/registry.h"
#include "support/tensors.h"
#include "support/tuning.h"

namespace {
std::atomic<long> allocations{0};
std::atomic<bool> none_left{false};
}  // namespace

// Counts every allocation of this program.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = none_left ? nullptr : std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto step = static_cast<std::size_t>(alignment);
  const std::size_t whole = (size + step - 1) / step * step;
  if (void* memory = none_left ? nullptr : std::aligned_alloc(step, whole)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace strobe {
namespace {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGE_SIZE);
}

/// Memory for one plan, aligned as it must be.
struct Workspace {
  explicit Workspace(std::size_t bytes)
      : size(bytes), data(::operator new (bytes + 1, std::align_val_t{64})) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { ::operator delete (data, std::align_val_t{64}); }
  std::size_t size;
  void* data;
};

TEST(FlashMemory, ARunAllocatesNothing) {
  const Implementation& flash = Registry::instance().find("flash");
  const std::pair<const char*, const char*> problems[] = {
      {"b4 s400 h2 d32 fp16 causal", "own"},
      {"b1 s700 h1 d32 fp32 causal", "shared"},
      {"b4 s400 h2 d32 fp32 sinks bias:hqk bwd", ""},
      {"lq400,3 lk7,500 h2 d32 fp32 drop0.1 cap5 bwd", ""}};
  for (const auto& [text, packs] : problems) {
    const Problem problem = Problem::parse(text);
    test::Operands operands = test::make_operands(problem, 1);
    const Plan plan = flash.plan(problem, {.threads = 2});
    EXPECT_EQ(test::tuning_of(plan, "packs"), packs) << text;
    const Workspace workspace(plan.workspace_bytes);
    const Tensors views = operands.views();
    flash.run(plan, views, workspace.data, workspace.size);  // starts the threads
    const long before = allocations;
    flash.run(plan, views, workspace.data, workspace.size);
    EXPECT_EQ(allocations, before) << text;
  }
}

TEST(FlashMemory, WorkspaceIsLinearInTheLengthAtMost) {
  const Implementation& flash = Registry::instance().find("flash");
  const auto bytes = [&](const char* text) {
    return flash.plan(Problem::parse(text), {.threads = 2}).workspace_bytes;
  };
  EXPECT_LT(bytes("b1 s65536 h8 d64 fp32"), std::size_t{8} << 20);
  EXPECT_LT(bytes("b1 s65536 h8 d512 fp32"), std::size_t{64} << 20);
  // A single query over a long cache: partial sums of the splits.
  EXPECT_LT(bytes("b1 sq1 sk1000000 h8 d128 fp32"), std::size_t{8} << 20);
  // Backward: shares of dq, as many as keep the cores busy while the length is short.
  constexpr std::size_t kDq = std::size_t{65536} * 8 * 128 * 4;
  EXPECT_LT(bytes("b1 s65536 h8 d128 fp32 bwd"), 2 * kDq + (std::size_t{64} << 20));
  EXPECT_LT(bytes("b1 s131072 h8 d128 fp32 bwd"), 2 * kDq + (std::size_t{64} << 20));
}

TEST(FlashMemory, ResidentSetBarelyGrowsAtALongSequence) {
  const Problem problem = Problem::parse("b1 s65536 h1 d64 bf16 w300:0");
  test::Operands operands = test::make_operands(problem, 1);
  const std::int64_t before = resident_bytes();
  test::run(Registry::instance().find("flash"), problem, operands.views(), 2);
  EXPECT_LT(resident_bytes() - before, std::int64_t{64} << 20);
}

TEST(PoolMemory, WithoutAnyForMoreThreadsFewerWillDo) {
  std::atomic<int> arrived{0};
  parallel_for(2, 2, [&](std::int64_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();  // the second has started by then
  });
  std::atomic<int> count{0};
  bool thrown = false;
  none_left = true;
  try {
    parallel_for(64, 64, [&](std::int64_t, int) { ++count; });
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  none_left = false;
  EXPECT_FALSE(thrown);
  EXPECT_EQ(count, 64);
}

}  // namespace
}  // namespace strobe
