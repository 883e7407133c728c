#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "strobe/implementation.h"

namespace strobe::python {

/// What a plan is made for.
struct PlanKey {
  Problem problem{};
  std::string implementation{};  ///< by name; empty picks the best on the device
  Device device{};
  int threads = 0;
  bool deterministic = false;
  bool tf32 = false;

  bool operator==(const PlanKey&) const = default;
};

struct Planned {
  const Implementation* implementation = nullptr;
  Plan plan{};
};

/// The plans of the latest problems. Any number of threads may ask at once.
class Plans {
 public:
  /// Throws what Registry and Implementation::plan throw.
  std::shared_ptr<const Planned> plan(const PlanKey& key);
  void clear();

 private:
  struct Entry {
    PlanKey key{};
    std::shared_ptr<const Planned> planned{};
  };
  std::shared_ptr<const Planned> find(const PlanKey& key);
  void keep(const PlanKey& key, const std::shared_ptr<const Planned>& planned);

  std::mutex mutex_{};
  std::list<Entry> latest_first_{};
};

Plans& plans();

}  // namespace strobe::python
