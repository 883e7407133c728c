#pragma once

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>

namespace strobe::cuda::jit {

/// Work with a name that several threads may want at a time: one of them does it, the others wait
/// and have what comes of it, be it an exception.
template <class Result>
class SharedWork {
 public:
  enum class Results : bool { forgotten, kept };

  /// What was done is done again for who asks later, unless its result is kept. What failed is.
  explicit SharedWork(Results results) : results_(results) {}

  Result get(const std::string& name, const std::function<Result()>& work) {
    std::promise<Result> promise;
    std::shared_future<Result> other;
    {
      const std::scoped_lock lock(mutex_);
      const auto [place, mine] = begun_.try_emplace(name);
      if (mine)
        place->second = promise.get_future().share();
      else
        other = place->second;
    }
    if (other.valid()) return other.get();
    try {
      Result result = work();
      promise.set_value(result);
      if (results_ == Results::forgotten) forget(name);
      return result;
    } catch (...) {
      promise.set_exception(std::current_exception());
      forget(name);
      throw;
    }
  }

 private:
  void forget(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    begun_.erase(name);
  }

  Results results_;
  std::mutex mutex_{};
  std::map<std::string, std::shared_future<Result>> begun_{};
};

}  // namespace strobe::cuda::jit
