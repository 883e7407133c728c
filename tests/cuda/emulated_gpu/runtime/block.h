#pragma once
// One block of threads of an emulated GPU: a fiber for each thread, all on the thread of the host
// that launches. Included in front of every kernel.
//
// What a GPU leaves open is made as bad as it may be, so that mistakes show: warps run in another
// order at every turn, memory that nobody has written is NaN, and copies arrive no sooner than they
// are waited for.

#include <ucontext.h>

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

class Block {
 public:
  inline static Block* current = nullptr;
  inline static Thread* thread = nullptr;

  Block(Extent grid, Extent size, std::size_t shared_bytes, int number_of_threads)
      : grid_(grid),
        size_(size),
        shared_(shared_bytes),
        threads_(static_cast<std::size_t>(number_of_threads)) {
    for (Thread& one : threads_) one.stack = std::make_unique<char[]>(kStackBytes);
  }

  Extent grid() const { return grid_; }
  Extent size() const { return size_; }
  Extent index() const { return index_; }

  /// Runs `body` in every thread. Throws std::runtime_error if they wait for each other for ever.
  void run(Extent index, const std::function<void()>& body) {
    index_ = index;
    body_ = &body;
    current = this;
    std::memset(shared_.data(), 0xFF, shared_.size());
    warps_.assign((threads_.size() + 31) / 32, {});
    barrier_arrivals_ = 0;
    trouble_.clear();
    units = {};
    units.unseen.resize((shared_.size() + 15) / 16);
    for (std::size_t i = 0; i < threads_.size(); ++i) start(threads_[i], static_cast<unsigned>(i));
    while (turn()) {
    }
    if (trouble_.empty() && !units.loads.empty()) trouble_ = "ends while a box is being loaded";
    if (!trouble_.empty()) throw std::runtime_error(trouble_);
  }

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

  /// Lets every thread go on once, the warps from another one on each time. Returns whether there
  /// is anything left to do.
  bool turn() {
    const long before = progress_;
    bool any = false;
    const std::size_t first = random() % warps_.size() * 32;
    for (std::size_t i = 0; i < threads_.size() && trouble_.empty(); ++i) {
      thread = &threads_[(first + i) % threads_.size()];
      if (thread->done) continue;
      any = true;
      swapcontext(&host_, &thread->context);
    }
    if (any && progress_ == before && trouble_.empty()) trouble_ = "threads wait for ever";
    return any && trouble_.empty();
  }

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

/// A kernel with its parameters.
struct Call {
  virtual ~Call() = default;
  virtual void run() const = 0;

  /// Returns how long it takes: the same wherever it runs, and whatever else runs there.
  long launch(Extent grid, Extent size, std::size_t shared_bytes) const {
    constexpr long kLaunch = 1000;
    Block block(grid, size, shared_bytes, static_cast<int>(size.x * size.y * size.z));
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) block.run({x, y, z}, [this] { run(); });
      }
    }
    return kLaunch + block.multiplications();
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
