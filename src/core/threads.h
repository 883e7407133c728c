#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strobe {

/// STROBE_THREADS if set (throws InvalidArgument if it is not a positive number), else the cores
/// that are this process's: see choose_threads.
int default_threads();

/// A reference to a callable (item, thread): no allocation, valid only during the call.
class ItemBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ItemBody>)
      ItemBody(F&& body)  // NOLINT(google-explicit-constructor): that is the point of it
      : object_(const_cast<void*>(static_cast<const void*>(&body))),
        call_([](void* object, std::int64_t item, int thread) {
          (*static_cast<std::remove_reference_t<F>*>(object))(item, thread);
        }) {}

  void operator()(std::int64_t item, int thread) const { call_(object_, item, thread); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, int);
};

/// How parallel_for deals items to threads: each has a share of neighbours.
class Shares {
 public:
  Shares(std::int64_t items, int threads)
      : count_(static_cast<int>(
            std::clamp<std::int64_t>(std::min<std::int64_t>(threads, items), 1, kMost))),
        each_(items / count_),
        larger_(items % count_) {}

  static constexpr int kMost = 64;  ///< more threads than that share their shares

  int count() const { return count_; }

  /// The first item of a share, and so the end of the one before.
  std::int64_t begin(int share) const {
    return share * each_ + std::min<std::int64_t>(share, larger_);
  }

 private:
  int count_;
  std::int64_t each_;    // items of a share,
  std::int64_t larger_;  // and one more in so many of the first
};

/// Calls body(item, thread) once for every item in [0, items) on at most `threads` threads (the
/// caller is one of them); thread < threads. Each thread begins with its share, in order, which is
/// the same as in the call before, so that memory stays in the cache of one core; then it helps
/// with the others'. Returns when all are done and rethrows the first exception. Nested calls run
/// in the calling thread. The threads are the library's own, or the host's (set_executor). What
/// each does is a span of this name, a literal.
void parallel_for(std::string_view name, std::int64_t items, int threads, ItemBody body);

inline void parallel_for(std::int64_t items, int threads, ItemBody body) {
  parallel_for("work", items, threads, body);
}

}  // namespace strobe
