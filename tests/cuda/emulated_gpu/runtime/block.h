#pragma once
// Blocks of threads of an emulated GPU: a fiber for each thread, all on the thread of the host
// that launches. Included in front of every kernel.
//
// What a GPU leaves open is made as bad as it may be, so that mistakes show: warps run in another
// order at every turn, memory that nobody has written is NaN, and copies arrive no sooner than they
// are waited for.

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "units.h"

namespace emulated {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// A copy from global to shared memory that is under way.
struct Copy {
  unsigned to;
  const void* from;
  bool valid;
};

struct Thread {
  ucontext_t context{};
  std::unique_ptr<char[]> stack{};
  Extent index{};
  unsigned number = 0;
  long exchanges = 0;
  long barriers = 0;
  bool done = false;
  std::vector<std::vector<Copy>> groups{};
  std::vector<Copy> open{};
  ThreadUnits units{};

  unsigned lane() const { return number % 32; }
};

/// What the lanes of a warp show each other. Two sets, for the first lanes may be at the next
/// exchange while the last have not read this one's.
struct Warp {
  static constexpr std::size_t kBytes = 64;
  alignas(16) char shown[2][32][kBytes];
  long arrived = 0;
};

class Cluster;

class Block {
 public:
  inline static Block* current = nullptr;
  inline static Thread* thread = nullptr;

  Block(Cluster& cluster, Extent grid, Extent size, std::size_t shared_bytes)
      : cluster_(cluster),
        grid_(grid),
        size_(size),
        shared_(shared_bytes),
        threads_(std::size_t{size.x} * size.y * size.z) {
    for (Thread& one : threads_) one.stack = std::make_unique<char[]>(kStackBytes);
  }

  Cluster& cluster() { return cluster_; }

  Extent grid() const { return grid_; }
  Extent size() const { return size_; }
  Extent index() const { return index_; }

  /// Prepares every thread to run `body`.
  void begin(Extent index, const std::function<void()>& body) {
    index_ = index;
    body_ = &body;
    std::memset(shared_.data(), 0xFF, shared_.size());
    warps_.assign((threads_.size() + 31) / 32, {});
    barrier_arrivals_ = 0;
    trouble_.clear();
    units = {};
    units.unseen.resize((shared_.size() + 15) / 16);
    for (std::size_t i = 0; i < threads_.size(); ++i) start(threads_[i], static_cast<unsigned>(i));
  }

  /// Lets every thread go on once, the warps from another one on each time.
  void turn() {
    current = this;
    const std::size_t first = random() % warps_.size() * 32;
    for (std::size_t i = 0; i < threads_.size() && trouble_.empty(); ++i) {
      thread = &threads_[(first + i) % threads_.size()];
      if (!thread->done) swapcontext(&host_, &thread->context);
    }
  }

  /// Threads that have not ended.
  long alive() const {
    return std::count_if(threads_.begin(), threads_.end(), [](const Thread& t) { return !t.done; });
  }
  long progress() const { return progress_; }

  /// What went wrong so far.
  const std::string& trouble() const { return trouble_; }

  BlockUnits units{};

  /// Waits until somebody has made it true.
  template <class Condition>
  void wait_until(Condition condition) {
    while (!condition()) leave();
  }
  void made_progress() { ++progress_; }

  /// Multiplications that a thread makes, which is what takes time here.
  void multiplied(long times) { multiplications_ += times; }
  long multiplications() const { return multiplications_; }

  /// Lets the others go on for some turns, as a thread may be held up at any time.
  void linger() {
    for (unsigned turns = random() % 8; turns > 0; --turns) {
      ++progress_;
      leave();
    }
  }

  unsigned random() {
    random_ = random_ * 1664525 + 1013904223;
    return random_ / 65536;
  }
  int threads() const { return static_cast<int>(threads_.size()); }

  /// Ends the launch: what the kernel did would be an error, or undefined, on a GPU.
  [[noreturn]] void fail(const std::string& what) {
    if (trouble_.empty()) {
      trouble_ = "block " + std::to_string(index_.x) + ", thread " +
                 std::to_string(thread->number) + ": " + what;
    }
    for (;;) leave();
  }

  char* shared(unsigned address, unsigned bytes) {
    if (address % bytes != 0) fail("shared memory is read or written across its alignment");
    if (address + bytes > shared_.size()) fail("an address is beyond the shared memory");
    return shared_.data() + address;
  }
  char* shared_begin() { return shared_.data(); }

  /// Shows a value to all lanes of the warp, and gives what they show.
  template <class T>
  const char (*exchange(const T& mine))[Warp::kBytes] {
    static_assert(sizeof(T) <= Warp::kBytes);
    Warp& warp = warps_[thread->number / 32];
    const long turn = thread->exchanges++;
    std::memcpy(warp.shown[turn % 2][thread->lane()], &mine, sizeof(T));
    ++warp.arrived;
    ++progress_;
    while (warp.arrived < (turn + 1) * 32) leave();
    return warp.shown[turn % 2];
  }

  void synchronize() {
    const long turn = ++thread->barriers;
    ++barrier_arrivals_;
    ++progress_;
    while (barrier_arrivals_ < turn * static_cast<long>(threads_.size())) leave();
  }

 private:
  static constexpr std::size_t kStackBytes = 256 * 1024;

  static void enter() {
    (*current->body_)();
    current->end_units();
    thread->done = true;
    ++current->progress_;
    for (;;) current->leave();
  }

  /// Nothing may be left to do that would use what the thread had.
  void end_units() {
    ThreadUnits& mine = thread->units;
    if (!mine.groups.empty() || !mine.open_products.empty()) fail("ends while it multiplies");
    if (!mine.open_stores.empty()) fail("ends with stores in an open group");
    for (Store& store : mine.stores) {
      if (!store.has_read) fail("ends before its stores have read");
      store.write();
    }
    mine.stores.clear();
  }

  void leave() { swapcontext(&thread->context, &host_); }

  void start(Thread& one, unsigned number) {
    one.number = number;
    one.index = {number % size_.x, number / size_.x % size_.y, number / (size_.x * size_.y)};
    one.exchanges = one.barriers = 0;
    one.done = false;
    one.groups.clear();
    one.open.clear();
    one.units = {};
    getcontext(&one.context);
    one.context.uc_stack.ss_sp = one.stack.get();
    one.context.uc_stack.ss_size = kStackBytes;
    one.context.uc_link = nullptr;
    makecontext(&one.context, enter, 0);
  }

  Cluster& cluster_;
  Extent grid_;
  Extent size_;
  Extent index_{};
  std::vector<char> shared_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_{};
  const std::function<void()>* body_ = nullptr;
  ucontext_t host_{};
  long barrier_arrivals_ = 0;
  long progress_ = 0;
  long multiplications_ = 0;
  unsigned random_ = 1;
  std::string trouble_{};
};

/// Blocks that run beside each other and reach each other's shared memory: mostly a single one.
class Cluster {
 public:
  Cluster(Extent grid, Extent block_size, std::size_t shared_bytes, unsigned blocks) {
    for (unsigned i = 0; i < blocks; ++i)
      blocks_.push_back(std::make_unique<Block>(*this, grid, block_size, shared_bytes));
  }

  /// Runs `body` in every thread of the blocks from `first` on. Throws std::runtime_error if they
  /// wait for each other for ever, or do what is wrong.
  void run(Extent first, const std::function<void()>& body) {
    arrived_ = 0;
    for (auto& block : blocks_) {
      block->begin(first, body);
      ++first.x;
    }
    // One goes on only when all others wait for it, or have ended.
    const auto* held_up = blocks_.size() > 1 ? &blocks_[first.x / blocks_.size() % 2] : nullptr;
    while (alive() > 0) {
      const long before = progress();
      for (auto& block : blocks_) {
        if (&block == held_up) continue;
        block->turn();
        if (!block->trouble().empty()) throw std::runtime_error(block->trouble());
      }
      if (progress() != before) continue;
      if (held_up == nullptr && alive() > 0) throw std::runtime_error("threads wait for ever");
      held_up = nullptr;
    }
    for (auto& block : blocks_) {
      if (!block->units.loads.empty()) throw std::runtime_error("ends while a box is being loaded");
    }
  }

  /// One of the blocks, to do something there.
  Block& reach(int rank) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= blocks_.size())
      Block::current->fail("a block is reached that is not beside this one");
    Block& block = *blocks_[static_cast<std::size_t>(rank)];
    if (block.alive() == 0) Block::current->fail("a block is reached that has ended");
    return block;
  }

  /// Waits for all threads that have not ended.
  void synchronize() {
    const long generation = generation_;
    ++arrived_;
    Block::current->made_progress();
    Block::current->wait_until([&] {
      if (generation_ == generation && arrived_ == alive()) {
        arrived_ = 0;
        ++generation_;
        Block::current->made_progress();
      }
      return generation_ != generation;
    });
  }

  long multiplications() const {
    return sum([](const Block& block) { return block.multiplications(); });
  }

 private:
  template <class Number>
  long sum(Number number) const {
    long all = 0;
    for (const auto& block : blocks_) all += number(*block);
    return all;
  }
  long alive() const {
    return sum([](const Block& block) { return block.alive(); });
  }
  long progress() const {
    return sum([](const Block& block) { return block.progress(); });
  }

  std::vector<std::unique_ptr<Block>> blocks_{};
  long arrived_ = 0;
  long generation_ = 0;
};

/// A kernel with its parameters.
struct Call {
  virtual ~Call() = default;
  virtual void run() const = 0;

  /// Returns how long it takes: the same wherever it runs, and whatever else runs there.
  long launch(Extent grid, Extent size, unsigned blocks_of_cluster,
              std::size_t shared_bytes) const {
    constexpr long kLaunch = 1000;
    Cluster cluster(grid, size, shared_bytes, blocks_of_cluster);
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; x += blocks_of_cluster)
          cluster.run({x, y, z}, [this] { run(); });
      }
    }
    return kLaunch + cluster.multiplications();
  }
};

template <class... Parameters>
class CallOf final : public Call {
 public:
  CallOf(void (*kernel)(Parameters...), void** parameters)
      : CallOf(kernel, parameters, std::index_sequence_for<Parameters...>{}) {}

  void run() const override { std::apply(kernel_, parameters_); }

 private:
  template <std::size_t... i>
  CallOf(void (*kernel)(Parameters...), void** parameters, std::index_sequence<i...>)
      : kernel_(kernel),
        parameters_(*static_cast<std::remove_const_t<Parameters>*>(parameters[i])...) {}

  void (*kernel_)(Parameters...);
  std::tuple<std::remove_const_t<Parameters>...> parameters_;
};

template <class... Parameters>
Call* bind(void (*kernel)(Parameters...), void** parameters) {
  return new CallOf<Parameters...>(kernel, parameters);
}

}  // namespace emulated
