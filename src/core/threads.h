#pragma once

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

/// Calls body(item, thread) once for every item in [0, items) on at most `threads` threads (the
/// caller is one of them); thread < threads. Each thread begins with every so manyth item, the same
/// ones as in the call before, and then helps the others: early items are begun before late ones,
/// about. Returns when all are done and rethrows the first exception. Nested calls run in the
/// calling thread. The threads are the library's own, or the host's (set_executor). What each does
/// is a span of this name, a literal.
void parallel_for(std::string_view name, std::int64_t items, int threads, ItemBody body);

inline void parallel_for(std::int64_t items, int threads, ItemBody body) {
  parallel_for("work", items, threads, body);
}

}  // namespace strobe
