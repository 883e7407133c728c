#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace strobe::lab {

/// Makes `count` things on so many threads, and hands each over in its turn, as soon as it is
/// there, in the calling thread. An exception ends it: those not yet begun are not made.
template <class Thing>
void make_in_order(std::size_t count, int threads, const std::function<Thing(std::size_t)>& make,
                   const std::function<void(std::size_t, const Thing&)>& take) {
  std::vector<std::promise<Thing>> results(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        results[i].set_value(make(i));
      } catch (...) {
        results[i].set_exception(std::current_exception());
        next = count;
      }
    }
  };
  std::vector<std::jthread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::size_t i = 0; i < count; ++i) take(i, results[i].get_future().get());
}

}  // namespace strobe::lab
